import { type Diagnostic, error, fail, ok, type Ports, type Result } from '../core/index.ts';
import { describeModel, type LocatedModel, locateModel, type ModelFacts } from '../model/index.ts';
import { formatOrigin, type TrainingSpec } from '../spec/index.ts';

export interface FoundModel {
  readonly located: LocatedModel;
  readonly facts: ModelFacts;
}

const WAYS_OUT = 'name it: --model ID, or --model FOLDER with its config.json';

/** The model of a launch: what `--model` says, an inline config, or what the launch names. */
export async function findModel(
  ports: Ports,
  spec: TrainingSpec,
  override: string | undefined,
): Promise<Result<FoundModel>> {
  const inline = override === undefined ? spec.modelConfig?.value : undefined;
  const located = inline
    ? ok<LocatedModel>({
        nameOrPath: 'model_config',
        source: 'inline',
        place: formatOrigin(spec.modelConfig!.origin),
        config: inline,
      })
    : await locate(ports, spec, override);
  if (!located.ok) return located;
  const facts = describeModel(located.value.config, located.value.storedTensors);
  return facts.ok
    ? ok({ located: located.value, facts: facts.value })
    : fail(...facts.error.map((problem) => placed(problem, located.value)));
}

async function locate(ports: Ports, spec: TrainingSpec, override: string | undefined): Promise<Result<LocatedModel>> {
  const named = override ?? spec.modelNameOrPath?.value;
  if (!named) {
    return fail(
      error('no-model', 'this launch does not say which model it trains', {
        ...(spec.modelNameOrPath ? { location: formatOrigin(spec.modelNameOrPath.origin) } : {}),
        help: WAYS_OUT,
      }),
    );
  }
  const found = await locateModel(named, ports, {});
  if (found.ok || override !== undefined || !spec.modelNameOrPath) return found;
  const location = formatOrigin(spec.modelNameOrPath.origin);
  return fail(...found.error.map((problem) => ({ location, ...problem })));
}

const placed = (problem: Diagnostic, model: LocatedModel): Diagnostic => ({ location: model.place, ...problem });
