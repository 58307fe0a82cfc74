import type { Op } from './op.ts';

/** The output projection and what is done to the logits. */
export interface HeadDescription {
  readonly name: string;
  readonly bias: boolean;
  /** The weight is the token embedding's. */
  readonly tied: boolean;
  /** That of the decoder, which has a table of its own beside the encoder's (T5Gemma). */
  readonly ownTable?: boolean;
  /** The loss makes the logits fp32, as a decoder's alone does. */
  readonly upcast?: boolean;
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
  /** Vectors a token between layers, each of the hidden size (AltUp); absent: one. */
  readonly streams?: number;
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
  /** No layer keeps them for its backward pass: they end with the last layer. */
  readonly sharesEnd?: boolean;
  /** All layers of a kind have the same weights (ALBERT). */
  readonly sharesWeights?: boolean;
  /** Every layer's result is kept until the loss is there, whether asked for or not (DeBERTa). */
  readonly keepsResults?: boolean;
  /** Names that a layer binds and the later ones read as well. */
  readonly carried?: readonly string[];
  /**
   * They stay in a dict that every layer is given: what a checkpoint makes again of them keeps its graph, until the last
   * checkpoint is through (Gemma 3n).
   */
  readonly carriedLinger?: boolean;
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
  /** Vectors a row, whatever its length (Whisper); absent: the tokens of the source. */
  readonly tokens?: number;
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
  /**
   * The ops run on an image, one after the other, from `hidden_states` to `hidden_states`; features of a vector, and of a head
   * that turn. Absent: only their widths are known.
   */
  readonly runs?: { readonly hiddenSize: number; readonly rotaryDim: number };
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
  /** false: the class knows no gradient checkpointing, and transformers says so. */
  readonly checkpoints?: boolean;
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
