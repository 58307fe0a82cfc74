import { error, fail, ok, type Ports, type Result } from '../core/index.ts';
import { parseNativePlan } from '../dialects/index.ts';
import { estimateMemory, explainMemory, type MemoryEstimate, type MemoryExplanation } from '../memory/index.ts';
import { planValues } from '../spec/index.ts';
import { findModel } from './model.ts';

/** One line of a plans file: estimated, or why not. */
export interface PlanEstimate {
  readonly id: string;
  readonly estimate: Result<MemoryEstimate>;
  /** false: the line is no plan; true where there is no estimate: nobody can estimate it. */
  readonly readable: boolean;
  /** Where it was asked for, and the plan could be estimated. */
  readonly explanation?: MemoryExplanation;
}

/** Estimates every non-empty line of a JSONL text, in order. A bad line is an error of that line only. */
export async function* estimatePlans(ports: Ports, text: string, explains = false): AsyncGenerator<PlanEstimate> {
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() !== '') yield await estimateLine(ports, line, index + 1, explains);
  }
}

async function estimateLine(ports: Ports, line: string, number: number, explains: boolean): Promise<PlanEstimate> {
  const parsed = parseJson(line, number);
  if (!parsed.ok) return { id: `line ${number}`, estimate: parsed, readable: false };
  const id = idOf(parsed.value) ?? `line ${number}`;
  const plan = parseNativePlan(parsed.value);
  if (!plan.ok) return { id, estimate: plan, readable: false };
  const readable = true;
  const model = await findModel(ports, plan.value.spec, undefined);
  if (!model.ok) return { id, estimate: model, readable };
  const values = planValues(plan.value.spec, model.value.facts.checkpointDtype);
  if (!values.ok) return { id, estimate: values, readable };
  if (!explains) return { id, estimate: estimateMemory(values.value, model.value.facts), readable };
  const explained = explainMemory(values.value, model.value.facts);
  return explained.ok
    ? { id, estimate: ok(explained.value.estimate), readable, explanation: explained.value }
    : { id, estimate: explained, readable };
}

const idOf = (value: unknown): string | undefined => {
  const id = (value as { id?: unknown } | null)?.id;
  return typeof id === 'string' || typeof id === 'number' ? String(id) : undefined;
};

function parseJson(line: string, number: number): Result<unknown> {
  try {
    return ok(JSON.parse(line));
  } catch (failure) {
    return fail(
      error('bad-json', `line ${number} is not JSON: ${(failure as Error).message}`, {
        location: `line ${number}`,
        help: 'write one native config as a JSON object a line',
      }),
    );
  }
}
