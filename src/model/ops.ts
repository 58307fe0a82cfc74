import type {
  ChunkScanOp,
  ConcatenateOp,
  ConvolutionOp,
  CopyIntoOp,
  CopyOp,
  DeltaRuleOp,
  GatedNormOp,
  MoeOp,
} from './mixer-ops.ts';

export type * from './mixer-ops.ts';

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
  | ConcatenateOp
  | CopyOp
  | ConvolutionOp
  | GatedNormOp
  | DeltaRuleOp
  | ChunkScanOp
  | CopyIntoOp
  | ActivationOp
  | BinaryOp
  | ScaleOp
  | SoftcapOp
  | DropoutOp
  | ClampOp
  | CastOp
  | FirstTokenOp
  | PositionBiasOp
  | ParameterOp
  | DisentangledOp
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
  /** Looked up by kind of segment: how long a row may be does not depend on it. */
  readonly segments?: boolean;
  /** The table is the first token table of the model: no parameters of its own (encoder and decoder of T5 and BART). */
  readonly shared?: boolean;
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
 * with 1 + weight (Nemotron). `layer_heads`: one nn.LayerNorm a head, results concatenated (StableLM). `rms_t5`: only the
 * variance in fp32, the result in the weight's dtype (T5).
 */
export type NormForm =
  | 'rms'
  | 'rms_weight_inside'
  | 'rms_offset'
  | 'layer'
  | 'layer_fp32'
  | 'layer_written'
  | 'layer_offset'
  | 'layer_heads'
  | 'rms_t5';

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

/** Rotary embedding of q and k; the names are bound again. */
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
  /**
   * Instead of `x * cos + rotate_half(x) * sin`. `chunks`: both halves turned and joined (gpt-oss). `strided`: the same with
   * even and odd features (DeepSeek V3). `complex`: a product of complex numbers in fp32 (DeepSeek V2, Llama 4).
   */
  readonly turning?: 'chunks' | 'strided' | 'complex';
}

/**
 * `upcast`: softmax in fp32, cast back (Llama and most). `plain`: softmax in the scores' dtype, cast to the
 * values' (GPT-2). `bare`: the same, as it comes out, which is fp32 under autocast (BERT). `in_place`: scores
 * divided in place (Falcon). `fp32`: q and k in fp32 before their product (GPT-J). `baddbmm`: heads and rows as one
 * dimension, ALiBi inside the product (BLOOM). `biased`: ALiBi added in fp32, masked_fill (MPT). `biased_in_place`: ALiBi
 * added in fp32, scaled in place, every stage named (Falcon). `sinks`: one more learned score a head, softmax over all, then
 * dropped (gpt-oss).
 */
export type EagerForm =
  | 'upcast'
  | 'plain'
  | 'bare'
  | 'in_place'
  | 'fp32'
  | 'baddbmm'
  | 'biased'
  | 'biased_in_place'
  | 'sinks';

export interface AttentionOp {
  readonly op: 'attention';
  readonly q: string;
  readonly k: string;
  readonly v: string;
  readonly output: string;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Features of a head of v and of the result, where they differ from those of q and k (MLA). */
  readonly valueDim?: number;
  readonly dropout: number;
  /** Cap on the scores, eager only. */
  readonly softcap: boolean;
  readonly eager: EagerForm;
  /** Keys and values are repeated to the number of query heads where the kernel is not given grouped heads. */
  readonly repeats: boolean;
  /** Sliding window in tokens; undefined: all tokens. */
  readonly window: number | undefined;
  /** `causal` (default): there is always a mask; `padding`: only where a padding mask is passed (encoders, cross-attention). */
  readonly mask?: 'causal' | 'padding';
  /** Name of a value that is added to the scores (T5's position bias). */
  readonly bias?: string;
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

/** `x.to(weight.dtype)` of a linear layer's weight. */
export interface CastOp {
  readonly op: 'cast';
  readonly input: string;
  readonly output: string;
  /** A layer's weight, a value by its name, or fp32. */
  readonly like: LinearOp | NormOp | { readonly value: string } | 'fp32';
}

/** `hidden_states[:, 0]`: one vector a row. */
export interface FirstTokenOp {
  readonly op: 'first_token';
  /** Features of a token. */
  readonly size: number;
  readonly input: string;
  readonly output: string;
}

/** A parameter that belongs to no layer of its own: class tokens, gates, the kernel of a patch embedding. PEFT never targets it. */
export interface ParameterOp {
  readonly op: 'parameter';
  readonly name: string;
  readonly elements: number;
  /** The value it is read by; absent: nothing on the way reads it. */
  readonly output?: string;
}

/**
 * DeBERTa's attention: scores of content with content, of content with relative positions and the other way round. Written
 * out in Python, so always eager.
 */
export interface DisentangledOp {
  readonly op: 'disentangled';
  readonly query: LinearOp;
  readonly key: LinearOp;
  readonly value: LinearOp;
  /** Projections of the positions; absent: those of the content, used twice. */
  readonly positionKey: LinearOp | undefined;
  readonly positionQuery: LinearOp | undefined;
  readonly contentToPosition: boolean;
  readonly positionToContent: boolean;
  readonly heads: number;
  readonly headDim: number;
  /** Vectors of relative positions; 0: none. */
  readonly positions: number;
  readonly dropout: number;
  readonly positionDropout: number;
  readonly input: string;
  readonly positionsInput: string;
  readonly output: string;
}

/** One number a head and pair of positions, shared by the rows: looked up in a table of distances, or zeros (T5). */
export interface PositionBiasOp {
  readonly op: 'position_bias';
  readonly name: string;
  readonly heads: number;
  /** Rows of the table; 0: zeros, without parameters. */
  readonly buckets: number;
  /** Value whose tokens are the keys. */
  readonly keys: string;
  /** Features of a token of `keys`. */
  readonly keySize: number;
  readonly output: string;
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

/** The output projection and what is done to the logits. */
export interface HeadDescription {
  readonly name: string;
  readonly bias: boolean;
  /** The weight is the token embedding's. */
  readonly tied: boolean;
  /** Logits are multiplied or divided by a number. */
  readonly scaled: boolean;
  /** The class hands out the logits in fp32. */
  readonly wide?: boolean;
  readonly softcap: boolean;
  /** Features of what is projected; absent: the hidden size. */
  readonly inFeatures?: number;
  /** A constant vector is added to the logits (BART). */
  readonly offset?: boolean;
  /** Before the projection, on `hidden_states` (BERT's prediction head). */
  readonly transform?: readonly Op[];
}

/** A column of layers with what stands before and after it. */
export interface Stack {
  readonly hiddenSize: number;
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
  /** Names that the embedding binds and every layer reads. */
  readonly shares?: readonly string[];
  /** Every layer's result is kept until the loss is there, whether asked for or not (DeBERTa). */
  readonly keepsResults?: boolean;
  /** Names that a layer binds and the later ones read as well. */
  readonly carried?: readonly string[];
  /** Shared cos and sin tables: features each, how many pairs of tables, and whether every row has its own; absent: none. */
  readonly rotaryTables: { readonly dim: number; readonly pairs: number; readonly perRow?: boolean } | undefined;
  /** How many attention masks are made (full, sliding). */
  readonly masks: number;
  /** The mask has a value for every head too (Falcon's ALiBi), in the hidden states' dtype whatever the kernel. */
  readonly maskHeads?: number;
  /** The model's loop names what a layer returns, attention weights too, until the next one is through. */
  readonly namesWeights?: boolean;
  /** Bytes an element of the eager mask where it is no additive one (MPT: 1). */
  readonly eagerMaskWidth?: number;
  /** They are made only where a padding mask is passed. */
  readonly paddingMasks?: boolean;
}

/** An encoder that runs before the decoder's layers, which read its result by the name `output`. */
export interface Encoder extends Stack {
  readonly output: string;
}

/** What one image of the model's usual size is: vectors in the tower, and tokens in the row it stands in. */
export interface ImageShape {
  readonly patches: number;
  readonly tokens: number;
  /** The size that is meant, `336 × 336`. */
  readonly pixels: string;
}

/** Weights that a step on text alone never runs: no activations and no gradients (vision towers, projectors). */
export interface IdleModules {
  readonly path: string;
  readonly ops: readonly Op[];
  /** How often they stand there. */
  readonly count: number;
}

/** What replaces the head for scores of whole rows: from `hidden_states` to `logits`; the last linear layer has one output a label. */
export interface Classifier {
  readonly ops: readonly Op[];
}

/** `causal`: next tokens; `masked`: a token head that transformers gives no causal class to; `seq2seq`: encoder and decoder. */
export type ModelForm = 'causal' | 'masked' | 'seq2seq';

export interface ModelDescription extends Stack {
  readonly vocabSize: number;
  /** Absent: causal. */
  readonly form?: ModelForm;
  /** Absent: a decoder alone. */
  readonly encoder?: Encoder;
  readonly idle?: readonly IdleModules[];
  /** Vision-language models. */
  readonly image?: ImageShape;
  /** Path of the embedding and of the last norm, where it is not that of the list of layers. */
  readonly rootPath?: string;
  readonly head: HeadDescription;
  /** Absent: `score`, a linear layer without bias on every token (GenericForSequenceClassification). */
  readonly classifier?: Classifier;
  /** Non-persistent buffers (inverse frequencies), bytes. */
  readonly bufferBytes: number;
  /** ALiBi: one bias value per head and position. */
  readonly alibi: boolean;
  /** Attention implementations beside eager; absent: sdpa and flash. Without sdpa transformers takes eager by itself. */
  readonly kernels?: readonly ('sdpa' | 'flash')[];
  /** PEFT's own lists for this architecture; undefined: PEFT has none. */
  readonly peft: PeftDefaults;
}

export interface PeftDefaults {
  readonly lora: readonly string[] | undefined;
  readonly ia3: readonly string[] | undefined;
  readonly ia3Feedforward: readonly string[] | undefined;
  /** Layers it refuses to put LoRA on. */
  readonly refused?: readonly string[];
}

/** Calls `visit` for every op with the path of the module it stands in, calls entered. */
export function visitOps(ops: readonly Op[], path: string, visit: (op: Op, path: string) => void): void {
  for (const op of ops) {
    if (op.op === 'call') visitOps(op.ops, joinPath(path, op.name), visit);
    else {
      if (op.op === 'disentangled') {
        for (const part of [op.query, op.key, op.value, op.positionKey, op.positionQuery]) if (part) visit(part, path);
      }
      visit(op, path);
    }
  }
}

export const joinPath = (path: string, name: string): string =>
  path === '' ? name : name === '' ? path : `${path}.${name}`;
