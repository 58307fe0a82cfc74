import { err, ok, type Result } from '../../core/index.ts';
import {
  activation,
  add,
  attention,
  call,
  heads,
  linear,
  multiply,
  noPeftDefaults,
  norm,
  rotary,
  rotaryBufferBytes,
  split,
} from '../architectures/parts.ts';
import { ACTIVATIONS, type Activation, type ModelDescription, type Op } from '../ops.ts';
import type { StoredTensor } from '../safetensors.ts';
import { type Layout, readLayout, type StoredLinear, type StoredNorm } from './layout.ts';
import { whyNotADecoder } from './not-a-decoder.ts';

type Config = Readonly<Record<string, unknown>>;

export interface ByShape {
  readonly description: ModelDescription;
  /** Share of the memory by which it may be off. */
  readonly uncertainty: number;
  readonly assumption: string;
}

/**
 * An unknown architecture as a decoder of the Llama line: from the tensors of its checkpoint where they are at hand, else
 * from the usual keys. The error is the reason why it is none, as half a sentence.
 */
export function describeByShape(config: Config, stored: readonly StoredTensor[] | undefined): Result<ByShape, string> {
  const reason = whyNotADecoder(config);
  if (reason) return err(reason);
  const hiddenSize = config.hidden_size as number;
  const layout = stored ? readLayout(stored, hiddenSize) : usualLayout(config, hiddenSize);
  if (!layout.ok) return layout;
  const description = describe(config, layout.value, hiddenSize);
  if (!description.ok) return description;
  const from = stored ? 'the tensors of its checkpoint' : 'the usual keys of its config';
  return ok({
    description: description.value,
    uncertainty: stored ? 0.1 : 0.15,
    assumption: `model type ${String(config.model_type)} is not one snug knows: its layers are read from ${from} as a decoder of the Llama line`,
  });
}

const count = (config: Config, key: string): number | undefined => {
  const value = config[key];
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined;
};

/** Llama's layers and names. */
function usualLayout(config: Config, hiddenSize: number): Result<Layout, string> {
  const inner = count(config, 'intermediate_size');
  if (!inner) return err('its config does not say intermediate_size');
  const headCount = config.num_attention_heads as number;
  const headDim = count(config, 'head_dim') ?? Math.floor(hiddenSize / headCount);
  const q = headCount * headDim;
  const kv = (count(config, 'num_key_value_heads') ?? headCount) * headDim;
  const biased = config.attention_bias === true;
  const mlpBias = config.mlp_bias === true;
  const make = (name: string, inFeatures: number, outFeatures: number, bias: boolean): StoredLinear => ({
    name,
    inFeatures,
    outFeatures,
    bias,
  });
  const normed = (name: string): StoredNorm => ({ name, size: hiddenSize, bias: false });
  return ok({
    layersPath: 'model.layers',
    layers: config.num_hidden_layers as number,
    linears: {
      q: make('self_attn.q_proj', hiddenSize, q, biased),
      k: make('self_attn.k_proj', hiddenSize, kv, biased),
      v: make('self_attn.v_proj', hiddenSize, kv, biased),
      o: make('self_attn.o_proj', q, hiddenSize, biased),
      gate: make('mlp.gate_proj', hiddenSize, inner, mlpBias),
      up: make('mlp.up_proj', hiddenSize, inner, mlpBias),
      down: make('mlp.down_proj', inner, hiddenSize, mlpBias),
    },
    norms: [normed('input_layernorm'), normed('post_attention_layernorm')],
    embedding: { ...normed('embed_tokens'), rows: config.vocab_size as number },
    positions: undefined,
    finalNorm: normed('norm'),
    head: config.tie_word_embeddings === true ? undefined : { name: 'lm_head', bias: false },
  });
}

const toOp = (part: StoredLinear, input: string, output: string): Op =>
  linear(part.name, input, output, part.inFeatures, part.outFeatures, part.bias);

const toNorm = (part: StoredNorm, name: string): Op =>
  norm(part.name, name, name, part.size, part.bias ? 'layer' : 'rms', part.bias);

function describe(config: Config, layout: Layout, hiddenSize: number): Result<ModelDescription, string> {
  const { linears, embedding, positions, finalNorm, head } = layout;
  const headCount = config.num_attention_heads as number;
  const { o, q, k, qkv } = linears;
  const headDim = o!.inFeatures / headCount;
  const kvHeads = (k ? k.outFeatures : (qkv!.outFeatures - o!.inFeatures) / 2) / headDim;
  if (!Number.isInteger(headDim) || !Number.isInteger(kvHeads) || kvHeads < 1 || headCount % kvHeads !== 0) {
    return err(`its attention projections do not add up to ${headCount} heads`);
  }
  if (q && q.outFeatures !== o!.inFeatures)
    return err(`its queries have ${q.outFeatures} features, not ${o!.inFeatures}`);
  const shape = { hiddenSize, heads: headCount, kvHeads, headDim, dropout: 0 };
  const turns = positions === undefined;
  const blockNorms = layout.norms.filter(({ size, name }) => size === hiddenSize && !/(^|\.)[qk]_?norm$/.test(name));
  const inner = layout.norms.filter((each) => !blockNorms.includes(each));
  const layer = arrange(
    blockNorms.map((each) => toNorm(each, 'hidden_states')),
    attend(linears, shape, inner, turns),
    feedForward(config, linears),
  );
  if (!layer) return err(`its layers have ${blockNorms.length} norms`);
  const outer = layout.layersPath.split('.').slice(0, -1).join('.');
  const below = (name: string): string => (outer && name.startsWith(`${outer}.`) ? name.slice(outer.length + 1) : name);
  return ok({
    hiddenSize,
    vocabSize: embedding.rows,
    layersPath: layout.layersPath,
    embedding: [
      {
        op: 'embedding',
        name: below(embedding.name),
        rows: embedding.rows,
        size: hiddenSize,
        by: 'tokens',
        output: 'inputs_embeds',
      },
      ...(positions
        ? [
            {
              op: 'embedding',
              name: below(positions.name),
              rows: positions.rows,
              size: hiddenSize,
              by: 'positions',
              output: 'position_embeds',
            } as const,
            add('inputs_embeds', 'position_embeds', 'hidden_states'),
          ]
        : [{ op: 'assign', input: 'inputs_embeds', output: 'hidden_states' } as const]),
    ],
    kinds: [layer],
    layers: new Array<number>(layout.layers).fill(0),
    final: finalNorm ? [toNorm({ ...finalNorm, name: below(finalNorm.name) }, 'hidden_states')] : [],
    head: { name: head?.name ?? 'lm_head', bias: head?.bias ?? false, tied: !head, scaled: false, softcap: false },
    rotaryTables: turns ? { dim: headDim, pairs: 1 } : undefined,
    masks: 1,
    bufferBytes: turns ? rotaryBufferBytes(headDim) : 0,
    alibi: false,
    peft: noPeftDefaults,
  });
}

function attend(
  linears: Layout['linears'],
  shape: { hiddenSize: number; heads: number; kvHeads: number; headDim: number; dropout: number },
  norms: readonly StoredNorm[],
  turns: boolean,
): Op {
  const states = ['query_states', 'key_states', 'value_states'];
  const { q, k, v, qkv, o } = linears;
  const kv = shape.kvHeads * shape.headDim;
  const normOf = (letter: string, state: string): Op[] =>
    norms
      .filter(({ name }) => new RegExp(`(^|[._])${letter}`).test(name.split('.').at(-1)!))
      .map((each) => toNorm(each, state));
  return call('', { hidden_states: 'hidden_states' }, { attn_output: 'hidden_states' }, [
    ...(qkv
      ? [
          toOp(qkv, 'hidden_states', 'qkv'),
          split('qkv', [
            ['query_states', o!.inFeatures],
            ['key_states', kv],
            ['value_states', kv],
          ]),
        ]
      : [q!, k!, v!].map((part, index) => toOp(part, 'hidden_states', states[index]!))),
    ...normOf('q', 'query_states'),
    ...normOf('k', 'key_states'),
    ...states.map((state) => heads(state, state)),
    ...(turns ? [rotary(shape)] : []),
    attention(shape),
    toOp(o!, 'attn_output', 'attn_output'),
  ]);
}

function feedForward(config: Config, { gate, up, gateUp, down }: Layout['linears']): Op {
  const said = config.hidden_act ?? config.hidden_activation ?? config.activation_function;
  const fn: Activation = ACTIVATIONS.find((known) => known === said) ?? (gate || gateUp ? 'silu' : 'gelu');
  const arguments_ = { hidden_states: 'x' };
  const results = { out: 'hidden_states' };
  if (gate && up) {
    return call('', arguments_, results, [
      toOp(gate, 'x', '$gate'),
      activation(fn, '$gate', '$activated'),
      toOp(up, 'x', '$up'),
      multiply('$activated', '$up', '$product'),
      toOp(down!, '$product', 'out'),
    ]);
  }
  if (gateUp) {
    return call('', arguments_, results, [
      toOp(gateUp, 'x', 'both'),
      split('both', [
        ['gate', gateUp.outFeatures / 2],
        ['up', gateUp.outFeatures / 2],
      ]),
      activation(fn, 'gate', '$activated'),
      multiply('up', '$activated', 'up'),
      toOp(down!, 'up', 'out'),
    ]);
  }
  return call('', arguments_, results, [toOp(up!, 'x', 'x'), activation(fn, 'x', 'x'), toOp(down!, 'x', 'out')]);
}

/** Two norms: before each block. Four: after each as well. One: both blocks side by side behind it. */
function arrange(norms: readonly Op[], attend_: Op, feed: Op): readonly Op[] | undefined {
  const hold: Op = { op: 'assign', input: 'hidden_states', output: 'residual' };
  const sum = add('residual', 'hidden_states', 'hidden_states');
  const [a, b, c, d] = norms;
  switch (norms.length) {
    case 1:
      return [
        hold,
        a!,
        { ...(attend_ as Extract<Op, { op: 'call' }>), results: { attn_output: 'attended' } },
        feed,
        add('attended', 'hidden_states', '$sum'),
        add('$sum', 'residual', 'hidden_states'),
      ];
    case 2:
      return [hold, a!, attend_, sum, hold, b!, feed, sum];
    case 4:
      return [hold, a!, attend_, b!, sum, hold, c!, feed, d!, sum];
    default:
      return undefined;
  }
}
