import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { error, note, warning } from '../../src/core/index.ts';
import { renderDiagnostic } from '../../src/report/index.ts';

const plain = { colour: false, width: 80 };
const full = error('too-large', 'this run wants 40.1 GiB on a GPU with 11.8 GiB free', {
  location: 'tune.yaml:14',
  excerpt: '  micro_batch_size: 12  ',
  notes: ['activations 28.0, weights 9.9 GiB', 'the estimate assumes full rows'],
  help: 'micro_batch_size: 3 with gradient_accumulation_steps: 8 needs 11.2 GiB, same global batch of 24',
});

describe('renderDiagnostic', () => {
  it('has the shape of the house', () => {
    expect(renderDiagnostic(full, plain)).toBe(
      [
        'error[too-large]: this run wants 40.1 GiB on a GPU with 11.8 GiB free',
        '  --> tune.yaml:14  micro_batch_size: 12',
        '  note: activations 28.0, weights 9.9 GiB',
        '  note: the estimate assumes full rows',
        '  help: micro_batch_size: 3 with gradient_accumulation_steps: 8 needs 11.2 GiB,',
        '        same global batch of 24',
      ].join('\n'),
    );
  });

  it('is one line where there is nothing to add', () => {
    expect(renderDiagnostic(warning('odd-key', 'nobody reads zebra'), plain)).toBe(
      'warning[odd-key]: nobody reads zebra',
    );
    expect(renderDiagnostic(note('fyi', 'one GPU is idle'), plain)).toBe('note[fyi]: one GPU is idle');
  });

  it('wraps each part under itself and leaves a long word whole', () => {
    const path = `/${'deep/'.repeat(14)}tune.yaml`;
    const text = renderDiagnostic(
      error('missing-file', 'a file that the launch names is not there', { help: `make ${path} or take it out` }),
      { colour: false, width: 40 },
    );
    expect(text).toBe(
      [
        'error[missing-file]: a file that the',
        '  launch names is not there',
        '  help: make',
        `        ${path}`,
        '        or take it out',
      ].join('\n'),
    );
  });

  it('differs in colour only by what a terminal hides', () => {
    const coloured = renderDiagnostic(full, { colour: true, width: 80 });
    expect(coloured).toContain('\u001b[');
    expect(stripVTControlCharacters(coloured)).toBe(renderDiagnostic(full, plain));
  });

  it('masks a secret in an excerpt', () => {
    const text = renderDiagnostic(
      error('x', 'cannot read this', { location: 'a.yaml:2', excerpt: 'hub_token: hf_mnbvcxzlkjhgfdsa12' }),
      plain,
    );
    expect(text).toBe('error[x]: cannot read this\n  --> a.yaml:2  hub_token: ***');
  });

  it('keeps to ASCII when told', () => {
    expect(renderDiagnostic(note('x', 'about 1.3 × the step time → slower'), { ...plain, unicode: false })).toBe(
      'note[x]: about 1.3 x the step time -> slower',
    );
  });
});
