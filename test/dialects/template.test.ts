import { describe, expect, it } from 'vitest';
import type { StackView, Written } from '../../src/dialects/dialect.ts';
import { template } from '../../src/dialects/template/index.ts';
import type { SettingName } from '../../src/spec/index.ts';
import { words } from './phrase-book.ts';
import { contextOf, positionOf } from './reading.ts';

/** The folder that new dialects are copied from: it must work as it stands. */
const line = template.examples![0]!.command;

function layerOf(text: string) {
  const position = positionOf(words(text));
  const claim = template.detect(position, contextOf());
  if (!claim) throw new Error('not claimed');
  const reading = template.read(claim, position, contextOf());
  if (!reading.ok) throw new Error(JSON.stringify(reading.error));
  return { dialect: template, claim, reading: reading.value };
}

function written(text: string, setting: SettingName, to: unknown): Written | undefined {
  const layer = layerOf(text);
  const view: StackView = { argv: words(text), layers: [layer], spec: layer.reading.spec };
  return template.write!(layer, setting, to, view);
}

describe('the template', () => {
  it('claims its command and no look-alike', () => {
    const claims = (text: string) => template.detect(positionOf(words(text)), contextOf());
    expect(claims(line)).toEqual({ from: 0, to: words(line).length });
    expect(claims('tool chat --rows 8')).toBeUndefined();
    expect(claims('tools train --rows 8')).toBeUndefined();
  });

  it('says values, defaults with their version, and what it does not read', () => {
    const { spec, unread } = layerOf(`${line} --otter 3`).reading;
    expect(spec.perDeviceTrainBatchSize).toEqual({ value: 8, origin: { kind: 'argv', index: 5 } });
    expect(spec.optim!.origin).toEqual({ kind: 'default', tool: 'tool', version: '1.0' });
    expect(unread!.map((each) => `${each.key}: ${each.reason}`)).toEqual([
      'lr: no-effect-on-memory',
      'otter: unknown-key',
    ]);
  });

  it('writes in place, appends, refuses, and leaves to others', () => {
    expect(written(line, 'maxLength', 64)).toEqual({ ok: true, edits: [{ kind: 'token', index: 9, text: '64' }] });
    const on = { enabled: true, useReentrant: false, everyNLayers: 1, offload: false };
    expect(written(line, 'gradientCheckpointing', on)).toMatchObject({ ok: true, edits: [{ kind: 'insert' }] });
    expect(written(line, 'gradientCheckpointing', { ...on, offload: true })).toMatchObject({ ok: false });
    expect(written(line, 'optim', 'sgd')).toBeUndefined();
  });
});
