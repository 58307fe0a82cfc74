/**
 * The vocabulary in which an architecture is written down: the ops of one forward pass in the order the Python code runs
 * them, with the Python names of the values they read and bind. Data only: what an op keeps, allocates and frees is the
 * business of the memory room.
 *
 * Values follow Python's rules: binding a name lets go of what it held, a call's own names end with the call, and a name
 * that begins with `$` is a value on the expression stack: it ends with the op that reads it.
 */
export type Op =
  | EmbeddingOp
  | AssignOp
  | LinearOp
  | NormOp
  | HeadsOp
  | RotaryOp
  | AttentionOp
  | SplitOp
  | ActivationOp
  | BinaryOp
  | ScaleOp
  | SoftcapOp
  | DropoutOp
  | ClampOp
  | CallOp
  | DropOp
  | RepeatOp
  | MoeOp;

/** Table lookup by token id or by position. */
export interface EmbeddingOp {
  readonly op: 'embedding';
  readonly name: string;
  readonly rows: number;
  readonly size: number;
  /** `tokens`: one vector a token; `positions`: one a position, shared by the rows of the batch; `rows`: one a position and row. */
  readonly by: 'tokens' | 'positions' | 'rows';
  /** The module multiplies by a number (Gemma). */
  readonly scaled?: boolean;
  readonly output: string;
}

export interface LinearOp {
  readonly op: 'linear';
  readonly name: string;
  readonly inFeatures: number;
  readonly outFeatures: number;
  readonly bias: boolean;
  /** `linear`: nn.Linear; `conv1d`: transformers' Conv1D (addmm); `matmul`: `x @ weight.T`, then a separate bias add. */
  readonly form: 'linear' | 'conv1d' | 'matmul';
  readonly input: string;
  readonly output: string;
}

/**
 * `rms`: fp32 inside, cast back, times weight (Llama). `rms_weight_inside`: weight applied before the cast (OLMo 2).
 * `rms_offset`: times (1 + weight) in fp32 (Gemma). `layer`: nn.LayerNorm. `layer_fp32`: F.layer_norm of an fp32 copy
 * without weights (OLMo). `layer_written`: layer norm without bias, written out in fp32 (Cohere). `layer_offset`: nn.LayerNorm
 * with 1 + weight (Nemotron). `layer_heads`: one nn.LayerNorm a head, results concatenated (StableLM).
 */
export type NormForm =
  | 'rms'
  | 'rms_weight_inside'
  | 'rms_offset'
  | 'layer'
  | 'layer_fp32'
  | 'layer_written'
  | 'layer_offset'
  | 'layer_heads';

export interface NormOp {
  readonly op: 'norm';
  readonly name: string;
  /** Elements normalised together. */
  readonly size: number;
  /** Groups with weights of their own (heads); absent: all share `size` weights. */
  readonly groups?: number;
  readonly form: NormForm;
  readonly bias: boolean;
  readonly input: string;
  readonly output: string;
}

/** `view(B, S, heads, head_dim).transpose(1, 2)`: no memory, but a copy in the backward pass where the layout changed. */
export interface HeadsOp {
  readonly op: 'heads';
  readonly input: string;
  readonly output: string;
}

/** Rotary embedding of q and k (`rotate_half` form); the names are bound again. */
export interface RotaryOp {
  readonly op: 'rotary';
  readonly q: string;
  readonly k: string;
  readonly qHeads: number;
  readonly kHeads: number;
  readonly headDim: number;
  /** Features of a head that turn. */
  readonly rotaryDim: number;
  /** The turned features are concatenated with the others (of which there may be none). */
  readonly join: boolean;
  /** Neighbours turn together (`x[..., ::2]`), not the two halves. */
  readonly pairs?: boolean;
  /** In fp32: q and k are cast before everything (Cohere), or each factor for itself (ERNIE). */
  readonly wide?: 'before' | 'inside';
  /**
   * The layer makes its own tables. `repeated`: each half of the shared ones twice (GLM). `gathered`, `indexed`: looked up
   * among `positions` sines, by torch.gather and cast (GPT-J), or by an index and left in fp32 (CodeGen); q and k lie as
   * (batch, tokens, heads, dim) then.
   */
  readonly tables?: 'repeated' | 'gathered' | 'indexed';
  readonly positions?: number;
}

/**
 * `upcast`: softmax in fp32, cast back (Llama and most). `plain`: softmax in the scores' dtype (GPT-2). `in_place`: scores
 * divided in place (Falcon). `fp32`: q and k in fp32 before their product (GPT-J). `baddbmm`: heads and rows as one
 * dimension, ALiBi inside the product (BLOOM). `biased`: ALiBi added in fp32, masked_fill (MPT). `biased_in_place`: ALiBi
 * added in fp32, scaled in place, every stage named (Falcon).
 */
export type EagerForm = 'upcast' | 'plain' | 'in_place' | 'fp32' | 'baddbmm' | 'biased' | 'biased_in_place';

export interface AttentionOp {
  readonly op: 'attention';
  readonly q: string;
  readonly k: string;
  readonly v: string;
  readonly output: string;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly dropout: number;
  /** Cap on the scores, eager only. */
  readonly softcap: boolean;
  readonly eager: EagerForm;
  /** Keys and values are repeated to the number of query heads where the kernel is not given grouped heads. */
  readonly repeats: boolean;
  /** Sliding window in tokens; undefined: all tokens. */
  readonly window: number | undefined;
}

/**
 * Consecutive parts of the last dimension. `chunk`: one op, gradients concatenated; `chunk_heads`: the same on a tensor
 * viewed as heads; `slices`: one slice each, gradients padded and added; `copies`: the first is a slice, the others are
 * copied out by an index list (Falcon).
 */
export interface SplitOp {
  readonly op: 'split';
  readonly form: 'chunk' | 'chunk_heads' | 'slices' | 'copies';
  readonly input: string;
  readonly outputs: readonly { readonly name: string; readonly features: number }[];
}

/** Names of transformers' ACT2FN that the memory room has a rule for. */
export const ACTIVATIONS = [
  'silu',
  'gelu',
  'gelu_pytorch_tanh',
  'gelu_new',
  'gelu_fast',
  'quick_gelu',
  'relu',
  'relu2',
  'tanh',
  'sigmoid',
  'xielu',
] as const;
export type Activation = (typeof ACTIVATIONS)[number] | 'bloom_gelu' | 'clamp';

/** `xielu` has two scalar parameters (Apertus). `bloom_gelu` keeps its input and writes its derivative out; `clamp` is not in place. */
export interface ActivationOp {
  readonly op: 'activation';
  readonly fn: Activation;
  readonly input: string;
  readonly output: string;
}

/** `add_in_place`: `a += b`. */
export interface BinaryOp {
  readonly op: 'add' | 'add_in_place' | 'multiply';
  readonly a: string;
  readonly b: string;
  readonly output: string;
}

/** `output = input`: one more name for the same value. */
export interface AssignOp {
  readonly op: 'assign';
  readonly input: string;
  readonly output: string;
}

/** Times or divided by a number. */
export interface ScaleOp {
  readonly op: 'scale';
  readonly input: string;
  readonly output: string;
}

/** `tanh(x / cap) * cap`. */
export interface SoftcapOp {
  readonly op: 'softcap';
  readonly input: string;
  readonly output: string;
}

export interface DropoutOp {
  readonly op: 'dropout';
  readonly p: number;
  readonly input: string;
  readonly output: string;
}

/** `clamp_` in place. */
export interface ClampOp {
  readonly op: 'clamp';
  readonly input: string;
}

/** A module's forward with names of its own. */
export interface CallOp {
  readonly op: 'call';
  /** Name in the parent module, empty for a plain function. */
  readonly name: string;
  /** Outer name → inner name. */
  readonly arguments: Readonly<Record<string, string>>;
  /** Inner name → outer name. */
  readonly results: Readonly<Record<string, string>>;
  readonly ops: readonly Op[];
}

/** Heads become real copies for `times` query heads each. */
export interface RepeatOp {
  readonly op: 'repeat';
  readonly times: number;
  readonly input: string;
  readonly output: string;
}

/** Lets go of names before their frame ends. */
export interface DropOp {
  readonly op: 'drop';
  readonly names: readonly string[];
}

/** Router and experts of a sparse block, experts as two 3-D parameters (transformers 5, grouped_mm). */
export interface MoeOp {
  readonly op: 'moe';
  readonly name: string;
  /** Module name of the router. */
  readonly router: string;
  readonly input: string;
  readonly output: string;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly experts: number;
  readonly expertsPerToken: number;
  readonly normalise: boolean;
  /** Names these weights had as separate linear layers, where PEFT still takes its targets in them; undefined: out of its reach. */
  readonly targetNames:
    | { readonly router: string; readonly gate: string; readonly up: string; readonly down: string }
    | undefined;
  /** Whether the weights of the chosen experts go back to the router's dtype. */
  readonly castWeights: boolean;
  readonly activation: Activation;
}

/** The output projection and what is done to the logits. */
export interface HeadDescription {
  readonly name: string;
  readonly bias: boolean;
  /** The weight is the token embedding's. */
  readonly tied: boolean;
  /** Logits are multiplied or divided by a number. */
  readonly scaled: boolean;
  readonly softcap: boolean;
}

export interface ModelDescription {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  /** Path of the list of layers, `model.layers`. */
  readonly layersPath: string;
  /** From ids to `hidden_states`. */
  readonly embedding: readonly Op[];
  /** Each kind of layer once; `hidden_states` in, `hidden_states` out. */
  readonly kinds: readonly (readonly Op[])[];
  /** Kind of every layer in order. */
  readonly layers: readonly number[];
  /** After the last layer, on `hidden_states`. */
  readonly final: readonly Op[];
  readonly head: HeadDescription;
  /** Shared cos and sin tables: features each, and how many pairs of tables; absent: none. */
  readonly rotaryTables: { readonly dim: number; readonly pairs: number } | undefined;
  /** How many attention masks are made (full, sliding). */
  readonly masks: number;
  /** Non-persistent buffers (inverse frequencies), bytes. */
  readonly bufferBytes: number;
  /** ALiBi: one bias value per head and position. */
  readonly alibi: boolean;
  /** Attention implementations beside eager; absent: sdpa and flash. Without sdpa transformers takes eager by itself. */
  readonly kernels?: readonly ('sdpa' | 'flash')[];
  /** The mask has a value for every head too (Falcon's ALiBi), in the hidden states' dtype whatever the kernel. */
  readonly maskHeads?: number;
  /** Bytes an element of the eager mask where it is no additive one (MPT: 1). */
  readonly eagerMaskWidth?: number;
  /** PEFT's own lists for this architecture; undefined: PEFT has none. */
  readonly peft: PeftDefaults;
}

export interface PeftDefaults {
  readonly lora: readonly string[] | undefined;
  readonly ia3: readonly string[] | undefined;
  readonly ia3Feedforward: readonly string[] | undefined;
}

/** Calls `visit` for every op with the path of the module it stands in, calls entered. */
export function visitOps(ops: readonly Op[], path: string, visit: (op: Op, path: string) => void): void {
  for (const op of ops) {
    if (op.op === 'call') visitOps(op.ops, joinPath(path, op.name), visit);
    else visit(op, path);
  }
}

export const joinPath = (path: string, name: string): string =>
  path === '' ? name : name === '' ? path : `${path}.${name}`;
