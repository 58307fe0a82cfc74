import { describe, expect, it } from 'vitest';
import { GiB } from '../../src/core/index.ts';
import type { MemoryExplanation } from '../../src/memory/index.ts';
import { explainBody, renderExplanation } from '../../src/report/index.ts';
import { estimateOf } from './reports.ts';

const explanation: MemoryExplanation = {
  estimate: estimateOf({ weights: 3, optimizerStates: 2 }),
  peak: { phase: 'backward', where: 'layer 11', op: 'up_proj' },
  phases: [
    { phase: 'forward', bytes: 4 * GiB, where: 'head and loss' },
    { phase: 'backward', bytes: 5 * GiB, where: 'layer 11' },
  ],
  terms: [
    {
      term: 'optimizerStates',
      bytes: 2 * GiB,
      formula: 'two states a weight',
      inputs: { trained_parameters: 1234567, optim: 'adamw_hf', gathered_bytes: 3 * GiB },
      sources: ['torch optim/adam.py', 'https://example.org/adam'],
    },
  ],
};

describe('renderExplanation', () => {
  it('shows each term, its numbers and sources, and where the peak is', () => {
    expect(renderExplanation(explanation, { colour: false, width: 100 })).toBe(
      [
        'optimizer states  2.0 GiB',
        '  two states a weight',
        '  trained parameters 1,234,567 · optim adamw_hf · gathered 3.0 GiB',
        '  from torch optim/adam.py',
        '  from https://example.org/adam',
        'the peak  backward pass, layer 11, up_proj',
        '  allocated by phase: forward pass 4.0 GiB, backward pass 5.0 GiB',
      ].join('\n'),
    );
  });

  it('breaks a source in words, never an address', () => {
    const address = `https://example.org/${'a'.repeat(60)}`;
    const [term] = explanation.terms;
    const sources = ['a file of this program, and another one for what is fitted', address];
    const lines = renderExplanation(
      { ...explanation, terms: [{ ...term!, sources }] },
      { colour: false, width: 40 },
    ).split('\n');
    expect(lines).toContain(`  from ${address}`);
    expect(lines.filter((line) => !line.includes(address)).every((line) => line.length <= 40)).toBe(true);
  });

  it('does not say a phase twice', () => {
    const optimizer = { phase: 'optimizer', where: 'optimizer step', op: undefined } as const;
    const text = renderExplanation({ ...explanation, peak: optimizer }, { colour: false, width: 100 });
    expect(text).toContain('\nthe peak  optimizer step\n');
  });
});

describe('explainBody', () => {
  it('is snake case with integers', () => {
    const body = explainBody(explanation);
    expect(body.peak).toEqual({ phase: 'backward', where: 'layer 11', op: 'up_proj' });
    expect(body.phases).toEqual({ forward: 4 * GiB, backward: 5 * GiB });
    expect(body.explain).toEqual([
      {
        term: 'optimizer_states',
        bytes: 2 * GiB,
        formula: 'two states a weight',
        inputs: { trained_parameters: 1234567, optim: 'adamw_hf', gathered_bytes: 3 * GiB },
        sources: ['torch optim/adam.py', 'https://example.org/adam'],
      },
    ]);
  });
});
