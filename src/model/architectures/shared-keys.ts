import type { ConfigReader } from '../config-reader.ts';
import type { Op } from '../ops.ts';
import { type AttentionShape, attention, call, heads, linear, norm, rotary } from './parts.ts';

/**
 * Attention of Gemma 3n and Gemma 4: the last layers have no keys and values of their own but read those of the last layer of
 * their type (sliding or full) that has.
 */

export const LAYER_TYPES = ['sliding_attention', 'full_attention'] as const;
export type LayerType = (typeof LAYER_TYPES)[number];

/** What a layer does about keys and values; `stores`: its own are read by later layers as well. */
export type KeyRole = 'own' | 'stores' | 'reads';

export interface LayerPlace {
  readonly type: LayerType;
  readonly role: KeyRole;
}

/** Type and role of every layer; by default every `pattern`th sees everything. */
export function keyRoles(config: ConfigReader, layers: number, pattern: number, shared: number): readonly LayerPlace[] {
  const named = config.layerNames('layer_types', layers, LAYER_TYPES) as readonly LayerType[] | undefined;
  const types = Array.from(
    { length: layers },
    (_, index): LayerType => named?.[index] ?? ((index + 1) % pattern === 0 ? 'full_attention' : 'sliding_attention'),
  );
  const first = shared > 0 ? layers - shared : layers;
  const last = (type: LayerType): number => types.slice(0, first).lastIndexOf(type);
  return types.map((type, index) => ({
    type,
    role: index >= first ? 'reads' : index === last(type) ? 'stores' : 'own',
  }));
}

/** Names by which a type's keys and values pass from layer to layer. */
export const sharedNames = (type: LayerType): readonly [keys: string, values: string] => [
  `${type}_keys`,
  `${type}_values`,
];

/** Values that layers leave for later ones. */
export const carriedNames = (places: readonly LayerPlace[]): readonly string[] => [
  ...new Set(places.filter(({ role }) => role === 'stores').flatMap(({ type }) => sharedNames(type))),
];

/** `self_attn`: heads are normed and turned before they are told apart in memory, values normed without weights. */
export function sharedKeyAttention(
  shape: AttentionShape,
  { type, role }: LayerPlace,
  options: { readonly bias: boolean; readonly valuesAreKeys?: boolean; readonly input?: string },
): Op {
  const { hiddenSize, heads: count, kvHeads, headDim } = shape;
  const [keys, values] = sharedNames(type);
  const project = (name: string, output: string, groups: number): Op =>
    linear(name, 'hidden_states', output, hiddenSize, groups * headDim, options.bias);
  const turn = (name: string, groups: number): Op => ({
    ...(rotary(shape, headDim, false, { flat: true }) as Extract<Op, { op: 'rotary' }>),
    q: name,
    qHeads: groups,
    k: '',
  });
  const own: readonly Op[] = [
    project('k_proj', 'key_states', kvHeads),
    options.valuesAreKeys
      ? { op: 'assign', input: 'key_states', output: 'value_states' }
      : project('v_proj', 'value_states', kvHeads),
    norm('k_norm', 'key_states', 'key_states', headDim, 'rms_wide'),
    turn('key_states', kvHeads),
    heads('key_states', 'key_states'),
    norm('v_norm', 'value_states', 'value_states', headDim, 'rms_bare'),
    heads('value_states', 'value_states'),
  ];
  return call(
    'self_attn',
    {
      [options.input ?? 'hidden_states']: 'hidden_states',
      ...(role === 'reads' ? { [keys]: 'key_states', [values]: 'value_states' } : {}),
    },
    {
      attn_output: 'hidden_states',
      attn_weights: '_',
      ...(role === 'stores' ? { key_states: keys, value_states: values } : {}),
    },
    [
      project('q_proj', 'query_states', count),
      norm('q_norm', 'query_states', 'query_states', headDim, 'rms_wide'),
      turn('query_states', count),
      heads('query_states', 'query_states'),
      ...(role === 'reads' ? [] : own),
      attention(shape),
      linear('o_proj', 'attn_output', 'attn_output', count * headDim, hiddenSize, options.bias),
    ],
  );
}

/** Kinds of layer without repeats, and which one every layer is. */
export function groupLayers<T>(
  places: readonly T[],
  make: (place: T) => readonly Op[],
): { readonly kinds: readonly (readonly Op[])[]; readonly layers: readonly number[] } {
  const names: string[] = [];
  const kinds: (readonly Op[])[] = [];
  const layers = places.map((place) => {
    const name = JSON.stringify(place);
    if (!names.includes(name)) {
      names.push(name);
      kinds.push(make(place));
    }
    return names.indexOf(name);
  });
  return { kinds, layers };
}
