import type { ModelDescription } from '../../model/index.ts';
import type { ParameterPlan } from '../parameters.ts';
import type { Context } from '../rules/context.ts';
import { softcap } from '../rules/run-ops.ts';
import { add, cast, copy, keepOutput, matmul, scale, slice } from '../tape/primitives.ts';
import { F32, type Node, type Tape, Tensor } from '../tape/tape.ts';
import { split } from '../tape/views.ts';
import { crossEntropy, type LossRoot, logitsOf } from './logits.ts';

/** Rows the chunked loss projects at a time (TRL `_CHUNKED_LM_HEAD_CHUNK_SIZE`). */
export const CHUNK_ROWS = 256;

/**
 * TRL's chunked_nll: the hidden states without the last token, sorted by validity, then checkpointed blocks of 256 rows.
 * Three blocks stand for all: the first adds to nothing, the others to the sum so far.
 */
export function chunkedLoss(
  ctx: Context,
  description: ModelDescription,
  plan: ParameterPlan,
  hidden: Tensor,
): LossRoot | null {
  const { tape, batch, tokens } = ctx;
  const rows = batch * Math.max(1, tokens - 1);
  const shifted = slice(tape, hidden, rows * description.hiddenSize, false);
  const flat = batch > 1 ? copy(tape, shifted, false) : tape.hold(shifted);
  const sorted = gatherRows(tape, flat, rows);
  for (const tensor of [flat, shifted, hidden]) tape.drop(tensor);
  const chunk = Math.min(CHUNK_ROWS, rows);
  const chunks = Math.min(3, Math.ceil(rows / CHUNK_ROWS));
  const leaf = plan.head.weight?.tensor.node?.leaf;
  if (leaf && !tape.noGrad) leaf.uses += chunks - 1;
  const bodies: (() => Tensor)[] = [];
  const roots: Node[] = [];
  const outer = tape.nodes;
  for (let i = 0; i < chunks; i += 1) {
    const part = slice(tape, sorted, chunk * description.hiddenSize, false);
    const body = (): Tensor => chunkBody(ctx, description, plan, part);
    // Forward: everything of the block ends with it.
    tape.discarding = true;
    tape.nodes = [];
    tape.saves = 0;
    tape.drop(body());
    const saves = tape.saves;
    tape.discarding = false;
    tape.nodes = outer;
    bodies.push(body);
    if (part.node || plan.head.weight?.tensor.node) {
      const root = tape.node(1, F32, () => {
        const previous = tape.nodes;
        const { owner } = tape;
        tape.nodes = [];
        tape.saves = 0;
        tape.stopAt = saves;
        const again = body();
        tape.stopAt = Number.POSITIVE_INFINITY;
        const last = again.node;
        tape.drop(again);
        if (last) last.grad = tape.bytes(0);
        tape.backward(tape.nodes, undefined, true);
        tape.nodes = previous;
        tape.owner = owner;
      });
      if (root) roots.push(root);
    }
    tape.release(part.buffer);
  }
  tape.nodes = outer;
  const kept = sorted.buffer;
  if (roots.length === 0) {
    tape.drop(sorted);
    return null;
  }
  // The blocks' inputs are views of the sorted states: kept until the first block has run backward.
  tape.save(roots[0]!, kept);
  tape.drop(sorted);
  return tape.node(1, F32, () => {
    for (const root of roots) root.grad = tape.bytes(0);
  });
}

/** Parts that torchtune's losses split the tokens into (`num_output_chunks`). */
const LOGITS_CHUNKS = 8;

/** Tokens of a row in one part of LitGPT's (litgpt/finetune/lora.py `lm_head_chunk_size`). */
const LITGPT_TOKENS = 128;

/**
 * torchtune's CEWithChunkedOutputLoss: the head on one part of the tokens after the other, all logits there before the
 * loss; each part has an fp32 copy for a moment, and its log-probabilities are kept. Compiled, one kernel reads the 16-bit
 * logits, which are kept instead. Source: torchtune/modules/loss/ce_chunked_output_loss.py, modules/transformer.py `chunked_output`.
 */
export function chunkedLogitsLoss(
  ctx: Context,
  description: ModelDescription,
  plan: ParameterPlan,
  hidden: Tensor,
  compiled: boolean,
): LossRoot | null {
  const { tape } = ctx;
  const rows = hidden.elements / description.hiddenSize;
  const leaf = plan.head.weight?.tensor.node?.leaf;
  const litgpt = ctx.ownModules === 'litgpt' && !leaf;
  const chunks = Math.min(litgpt ? Math.ceil(ctx.tokens / LITGPT_TOKENS) : LOGITS_CHUNKS, rows);
  if (leaf && !tape.noGrad) leaf.uses += chunks - 1;
  const each = Math.ceil(rows / chunks);
  const sizes = Array.from({ length: chunks }, (_, i) => Math.max(0, Math.min(each, rows - i * each)));
  const states = split(
    tape,
    hidden,
    sizes.map((size) => size * description.hiddenSize),
    false,
  );
  tape.drop(hidden);
  const narrow = states.map((part) => {
    const logits = logitsOf(ctx, description, plan, part);
    tape.drop(part);
    return logits;
  });
  const parts = litgpt ? widened(tape, narrow) : narrow;
  const roots = parts.flatMap((logits): Node[] => {
    if (compiled) return compiledEntropy(tape, logits);
    const wide = cast(tape, logits, F32);
    const { root, kept } = crossEntropy(tape, wide);
    tape.drop(wide);
    tape.drop(kept);
    return root ? [root] : [];
  });
  // LitGPT's loop names them until the next ones are there.
  if (!litgpt || tape.noGrad) for (const logits of parts) tape.drop(logits);
  if (roots.length === 0) return null;
  return tape.node(1, F32, () => {
    for (const root of roots) root.grad = tape.bytes(0);
  });
}

/** Fabric hands outputs on in fp32, a list once all of it is there (lightning/fabric/wrappers.py `convert_output`). */
function widened(tape: Tape, parts: readonly Tensor[]): Tensor[] {
  const wide = parts.map((part) => cast(tape, part, F32));
  for (const part of parts) tape.drop(part);
  return wide;
}

/** Logits in, one number out: the gradient has the logits' dtype. */
function compiledEntropy(tape: Tape, logits: Tensor): Node[] {
  const target = logits.node;
  if (!target) return [];
  const root = tape.node(1, F32, () => tape.give(target, tape.alloc(logits.elements, logits.dtype)));
  tape.save(root, logits.buffer);
  return root ? [root] : [];
}

/** `_chunk`: product with the weight as it is at every use, fp32 copy, log-softmax, and the entropy that is only logged. */
function chunkBody(ctx: Context, description: ModelDescription, plan: ParameterPlan, part: Tensor): Tensor {
  const { tape, amp } = ctx;
  const head = plan.head.weight!;
  const dtype = amp ?? part.dtype;
  // `w.t()` is a view: autocast does not cache its copy.
  const matched = cast(tape, head.tensor, part.dtype);
  const weight = cast(tape, matched, dtype);
  const input = cast(tape, part, dtype);
  const logits = matmul(tape, input, weight, null, part.elements / description.hiddenSize, description.vocabSize);
  tape.drop(input);
  tape.drop(weight);
  tape.drop(matched);
  let wide = cast(tape, logits, F32);
  tape.drop(logits);
  const steps = [
    ...(plan.head.bias ? [(x: Tensor) => add(tape, x, plan.head.bias!.tensor)] : []),
    ...(description.head.scaled ? [(x: Tensor) => scale(tape, x)] : []),
    ...(description.head.softcap ? [(x: Tensor) => softcap(ctx, x)] : []),
  ];
  for (const step of steps) {
    const next = step(wide);
    tape.drop(wide);
    wide = next;
  }
  const { root, kept } = crossEntropy(tape, wide);
  const logProbabilities = new Tensor(kept.buffer, kept.elements, F32, null);
  const exponent = keepOutput(tape, logProbabilities);
  const entropy = keepOutput(tape, logProbabilities);
  // Its last product saves something too: the recomputation goes on to here.
  tape.saves += 1;
  tape.drop(exponent);
  tape.drop(entropy);
  tape.drop(kept);
  tape.drop(wide);
  return new Tensor(tape.bytes(4), 1, F32, root);
}

/** `h[order]`. */
function gatherRows(tape: Tape, x: Tensor, rows: number): Tensor {
  const parent = x.node;
  const order = tape.bytes(rows * 8);
  const node = parent ? tape.node(x.elements, x.dtype, () => tape.give(parent, tape.alloc(x.elements, x.dtype))) : null;
  if (node) tape.save(node, order);
  tape.release(order);
  return new Tensor(tape.alloc(x.elements, x.dtype), x.elements, x.dtype, node);
}
