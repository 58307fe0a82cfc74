import { err, ok, type Result } from '../../core/index.ts';
import type { StoredTensor } from '../safetensors.ts';

/** A linear layer as stored. */
export interface StoredLinear {
  /** Below the layer: `self_attn.q_proj`. */
  readonly name: string;
  readonly inFeatures: number;
  readonly outFeatures: number;
  readonly bias: boolean;
}

export interface StoredNorm {
  readonly name: string;
  readonly size: number;
  readonly bias: boolean;
}

/** The parts of one layer by what they are for. */
export type Part = 'q' | 'k' | 'v' | 'qkv' | 'o' | 'gate' | 'up' | 'gateUp' | 'down';

export interface Layout {
  /** `model.layers`. */
  readonly layersPath: string;
  readonly layers: number;
  readonly linears: Readonly<Partial<Record<Part, StoredLinear>>>;
  /** In the order of their names in the file. */
  readonly norms: readonly StoredNorm[];
  readonly embedding: StoredNorm & { readonly rows: number };
  /** Learned positions. */
  readonly positions: { readonly name: string; readonly rows: number } | undefined;
  readonly finalNorm: StoredNorm | undefined;
  readonly head: { readonly name: string; readonly bias: boolean } | undefined;
}

/** Names in use for each part; what a fused or plain feed-forward layer calls its first half is told apart by shape. */
const NAMES: readonly (readonly [Part, RegExp])[] = [
  ['qkv', /(^|\.)(qkv|qkv_proj|query_key_value|Wqkv|wqkv|W_pack|c_attn|in_proj)$/],
  ['q', /(^|\.)(q|q_proj|wq|query|q_lin|query_proj)$/],
  ['k', /(^|\.)(k|k_proj|wk|key|k_lin|key_proj)$/],
  ['v', /(^|\.)(v|v_proj|wv|value|v_lin|value_proj)$/],
  ['o', /(attn|attention|mixer)[\w.]*\.(o_proj|out_proj|wo|dense|c_proj|out_lin|proj|o)$/],
  ['gate', /\.(gate_proj|w1|c_fc_0|gate)$/],
  ['gateUp', /\.(gate_up_proj|fc_in_gate|up_gate_proj)$/],
  ['down', /\.(down_proj|w2|fc2|fc_out|c_proj|dense_4h_to_h|wo|out)$/],
  ['up', /\.(up_proj|w3|fc1|fc_in|c_fc|c_fc_1|dense_h_to_4h|wi|w1)$/],
];

/** Buffers that older checkpoints hold: no parameters. */
const BUFFER = /(inv_freq|masked_bias|(attn|attention)\.bias|rotary_emb\.\w+_cached)$/;

interface Module {
  weight?: readonly number[];
  bias?: readonly number[];
}

/** Reads what a layer is made of from the tensors of a checkpoint; the error says which of them no plain decoder has. */
export function readLayout(tensors: readonly StoredTensor[], hiddenSize: number): Result<Layout, string> {
  const packed = tensors.find(({ dtype }) => !/^(F|BF)(16|32|64)$/.test(dtype) && !/^(I64|BOOL)$/.test(dtype));
  if (packed) return err(`${packed.name} is stored as ${packed.dtype}`);
  const inLayers = new Map<string, Map<number, Map<string, Module>>>();
  const outside = new Map<string, Module>();
  for (const { name, shape } of tensors) {
    if (BUFFER.test(name)) continue;
    const match = /^(.+?)\.(\d+)\.(.+)\.(weight|bias)$/.exec(name);
    const plain = /^(.+)\.(weight|bias)$/.exec(name);
    if (match) {
      const [, path, index, module, kind] = match as unknown as [string, string, string, string, 'weight' | 'bias'];
      const layers = at(inLayers, path, () => new Map<number, Map<string, Module>>());
      const modules = at(layers, Number(index), () => new Map<string, Module>());
      at(modules, module, (): Module => ({}))[kind] = shape;
    } else if (plain) at(outside, plain[1]!, (): Module => ({}))[plain[2] as 'weight' | 'bias'] = shape;
    else return err(`${name} is neither a weight nor a bias`);
  }
  if (inLayers.size !== 1) return err(`its checkpoint holds ${inLayers.size} lists of layers`);
  const [[layersPath, layers]] = inLayers as unknown as [[string, Map<number, Map<string, Module>>]];
  const first = layers.get(0);
  if (!first) return err(`${layersPath}.0 is missing in its checkpoint`);
  const asText = (modules: Map<string, Module>): string => JSON.stringify([...modules].sort());
  const odd = [...layers].find(([, modules]) => asText(modules) !== asText(first));
  if (odd) return err(`${layersPath}.${odd[0]} is not like the first layer`);
  const layer = readLayer(first, hiddenSize);
  if (!layer.ok) return layer;
  const rest = readOutside(outside, hiddenSize);
  return rest.ok ? ok({ layersPath, layers: layers.size, ...layer.value, ...rest.value }) : rest;
}

function at<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}

function readLayer(
  modules: ReadonlyMap<string, Module>,
  hiddenSize: number,
): Result<Pick<Layout, 'linears' | 'norms'>, string> {
  const linears: Partial<Record<Part, StoredLinear>> = {};
  const norms: StoredNorm[] = [];
  for (const [name, { weight, bias }] of modules) {
    if (weight?.length === 1) norms.push({ name, size: weight[0]!, bias: bias !== undefined });
    else if (weight?.length === 2) {
      const [outFeatures, inFeatures] = weight as [number, number];
      const part = partOf(`.${name}`, linears, inFeatures === hiddenSize);
      if (!part) return err(`its layers have a weight that no plain decoder has (${name})`);
      linears[part] = { name, inFeatures, outFeatures, bias: bias !== undefined };
    } else return err(`its layers have a weight of ${weight?.length ?? 0} dimensions (${name})`);
  }
  const { q, k, v, qkv, o, gate, up, gateUp, down } = linears;
  if (!o || !(qkv || (q && k && v))) return err('its layers have no attention projections that could be told apart');
  if (!down || !(gateUp || up)) return err('its layers have no feed-forward projections that could be told apart');
  if (gate && gateUp) return err('its layers have two gates');
  return ok({ linears, norms });
}

function partOf(name: string, taken: Partial<Record<Part, StoredLinear>>, fromHidden: boolean): Part | undefined {
  const found = NAMES.find(([part, pattern]) => {
    if (taken[part] || !pattern.test(name)) return false;
    return part === 'down' || part === 'o' || fromHidden;
  });
  return found?.[0];
}

function readOutside(
  modules: ReadonlyMap<string, Module>,
  hiddenSize: number,
): Result<Pick<Layout, 'embedding' | 'positions' | 'finalNorm' | 'head'>, string> {
  let embedding: Layout['embedding'] | undefined;
  let positions: Layout['positions'];
  let finalNorm: StoredNorm | undefined;
  let head: Layout['head'];
  for (const [name, { weight, bias }] of modules) {
    if (weight?.length === 1 && weight[0] === hiddenSize && !finalNorm) {
      finalNorm = { name, size: hiddenSize, bias: bias !== undefined };
    } else if (weight?.length === 2 && weight[1] === hiddenSize) {
      if (/(lm_head|output|output_layer|embed_out)$/.test(name)) head = { name, bias: bias !== undefined };
      else if (/(wpe|embed_positions|position_embeddings)$/.test(name)) positions = { name, rows: weight[0]! };
      else if (!embedding) embedding = { name, rows: weight[0]!, size: hiddenSize, bias: false };
      else return err(`its checkpoint has a second table (${name})`);
    } else return err(`its checkpoint has a weight outside of the layers that no plain decoder has (${name})`);
  }
  return embedding ? ok({ embedding, positions, finalNorm, head }) : err('its checkpoint has no token embedding');
}
