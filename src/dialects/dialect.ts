import type { Diagnostic, Result } from '../core/index.ts';
import type { OffloadTarget, Origin, SettingName, Strategy, TrainingSpec } from '../spec/index.ts';
import type {
  DialectKind,
  LaunchSource,
  ReadContext,
  ResumeSupport,
  SettingParts,
  StackEntry,
  Unread,
} from './contract.ts';
import type { ShellScript } from './shell/script.ts';

/**
 * One launcher, trainer, engine or wrapper: a folder of its own and one line in registry.ts. A launch is a stack of them.
 * `detect` answers "not mine" with undefined; `read` answers "mine but broken" with an error and "mine, partly understood"
 * with `unread` entries; `write` answers "not my setting" with undefined.
 */
export interface Dialect<Detail = unknown> {
  readonly id: string;
  /** `wrapper`: peeled and named in `LaunchReading.wrappers`, no part of the stack. */
  readonly kind: DialectKind | 'wrapper';
  readonly title: string;
  /** The tool's own reference of its options. */
  readonly docs: string;
  /** What a file of this dialect may hold at the least, in place of one that cannot be read; default: nothing. */
  readonly standIn?: string;
  detect(position: Position, context: ReadContext): Claim | undefined;
  read(claim: Claim, position: Position, context: ReadContext): Result<Reading<Detail>>;
  /** What must change in the launch so that `setting` becomes `to`. Edits on one place by several settings must agree. */
  write?(layer: Layer<Detail>, setting: SettingName, to: unknown, stack: StackView): Written | undefined;
  /** Edits here when another layer is told `setting` (a number that stands in both places). */
  follow?(layer: Layer<Detail>, setting: SettingName, to: unknown): readonly SourceEdit[];
  /**
   * Launches that show what is understood and what can be written; `snug dialects` and the contract test read them. Not for
   * wrappers. What only some launches have (an adapter, a file, flags alone) takes an example each.
   */
  readonly examples?: readonly Example[];
  /** One clause: why no value is written back (a config that is a program, a tool that is only read). */
  readonly readOnly?: string;
  /** How a file of this dialect is known when it is given alone (`snug run FILE`), for people; goes with `claimFile`. */
  readonly fileSign?: string;
  /** The command that belongs to a file given alone; undefined: not a file of this dialect. */
  claimFile?(file: BareFile): FileClaim | undefined;
}

/** A launch as people write it. */
export interface Example {
  /** One line of a shell. */
  readonly command: string;
  /** Files that the command names, by the names it gives them. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A config file that was given without a command. */
export interface BareFile {
  /** As the user named it, and as the command will name it. */
  readonly path: string;
  /** What stands at the top of the file. */
  readonly values: ReadonlyMap<string, FileValue>;
}

export type FileClaim =
  | { readonly kind: 'command'; readonly argv: readonly string[] }
  /** Known, but several commands could start it, or none is complete: `what` is a clause for the message (`a TRL config`). */
  | {
      readonly kind: 'unclear';
      readonly what: string;
      readonly commands: readonly string[];
      /** A command under which the file can be read for what it says by itself. */
      readonly presumed?: readonly string[];
    };

/** Where reading stands: everything left of `index` is claimed. */
export interface Position {
  /** The whole command as typed; indices of origins and edits count in it. */
  readonly argv: readonly string[];
  /** First token that nobody has claimed. */
  readonly index: number;
  /** Set once a launcher or wrapper has named what it starts: only trainers are asked then. */
  readonly target?: Target;
  /** Set when another layer refers to this file (or inline text): only engines are asked then. */
  readonly engine?: EngineUse;
  /** The environment the next program sees: the caller's, changed by assignments and wrappers so far. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** GPUs the next program sees (`CUDA_VISIBLE_DEVICES` of the command counted in); undefined: unknown. */
  readonly visibleGpus: number | undefined;
  /** Layers read so far, outermost first. */
  readonly above: readonly Layer[];
}

/** What a launcher starts. Its own arguments are `argv.slice(argsFrom)`; nothing after belongs to anyone else. */
export interface Target {
  /** `train.py` | `-m package.module` | any program. */
  readonly form: 'script' | 'module' | 'program';
  /** Path, dotted module name, or program. */
  readonly name: string;
  /** Token that holds `name`. */
  readonly index: number;
  readonly argsFrom: number;
}

/** The tokens a dialect owns: `[from, to)`. */
export interface Claim {
  readonly from: number;
  readonly to: number;
}

/** What follows a layer. */
export type HandOn =
  /** Another whole command begins at this token. */
  | { readonly kind: 'command'; readonly index: number }
  | { readonly kind: 'target'; readonly target: Target }
  /** The next command is the first one from here on that is known by its name; `otherwise` where there is none. */
  | { readonly kind: 'search'; readonly from: number; readonly otherwise: readonly Diagnostic[] }
  /** Shell text in which a command is to be found. */
  | { readonly kind: 'script'; readonly script: ShellScript };

/** What one dialect understood of its part. */
export interface Reading<Detail = unknown> {
  /** Settings with their origins, the dialect's own defaults included. What does not apply is absent, unknown is null. */
  readonly spec: TrainingSpec;
  /** What is known of a setting that as a whole is null: the rank where the rest of the adapter stands in a missing file. */
  readonly parts?: SettingParts;
  readonly handOn?: HandOn;
  /** Launchers (and trainers that start or drive several GPUs themselves). The innermost layer that says it wins. */
  readonly processes?: Processes;
  /** Launchers, engines and trainers that shard. The innermost layer that says it wins: trainer, engine, launcher. */
  readonly sharding?: Sharding;
  /** Files this layer read, in order. */
  readonly files?: readonly FileReference[];
  /** Engines this layer brings in; those with a `source` are read by the engine's dialect, the others only join the stack. */
  readonly engines?: readonly EngineUse[];
  /** Variables this layer sets for what it starts; undefined removes one (`env -u X`). */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Where in the layer's first YAML file `env` stands, if it does. */
  readonly envFromFile?: readonly string[];
  readonly unread?: readonly Unread[];
  readonly diagnostics?: readonly Diagnostic[];
  /** How wrappers name themselves in `LaunchReading.wrappers` (`nohup`, `uv run`, `timeout 4h`); default: the dialect's id; empty: not at all. */
  readonly label?: string;
  /** Trainers whose memory follows other rules than those that are modelled: says so, and where; nothing is predicted then. */
  readonly notEstimated?: Diagnostic;
  /** For the stack entry; a trainer's own command says `cli`. */
  readonly via?: StackEntry['via'];
  /** The Python that runs the trainer, as the command says it. */
  readonly python?: string;
  /** Trainers: how this launch goes on from a checkpoint. */
  readonly resume?: ResumeSupport;
  /** Whatever the dialect's own `write` needs. */
  readonly detail: Detail;
}

export interface Processes {
  /** null: cannot be known (`gpu` without a machine, a variable). */
  readonly nodes: number | null;
  readonly perNode: number | null;
  /** The processes find each other (LOCAL_RANK is set), so that trainers wrap the model; false: one plain process. */
  readonly distributed: boolean;
  readonly origin: Origin;
}

export interface Sharding {
  /** null: an engine is on, but which stage cannot be known. */
  readonly strategy: Strategy | null;
  readonly offload: readonly OffloadTarget[];
  readonly origin: Origin;
}

/** How the launch names a file, so that a copy can be named instead. */
export type Pointer =
  /** The token is `before` + path (`--config_file=` + path, or the path alone with an empty `before`). */
  | { readonly kind: 'argv'; readonly index: number; readonly before: string }
  /** A key of another file that this launch names. */
  | { readonly kind: 'file'; readonly path: string; readonly keyPath: readonly string[] }
  /** Found without being named (`default_config.yaml`, a builtin name): cannot be pointed elsewhere, why in one clause. */
  | { readonly kind: 'fixed'; readonly reason: string };

export interface FileReference {
  readonly source: LaunchSource;
  readonly format: 'yaml' | 'json';
  readonly pointer: Pointer;
}

export interface EngineUse {
  /** `deepspeed-config`, `accelerate-config`, `fsdp`. */
  readonly dialect: string;
  readonly file?: FileReference;
  /** Where the engine was switched on. */
  readonly origin: Origin;
}

/** A dialect at its place in the stack. */
export interface Layer<Detail = unknown> {
  readonly dialect: Dialect;
  readonly claim: Claim;
  readonly reading: Reading<Detail>;
}

/** What a writer may look at. */
export interface StackView {
  readonly argv: readonly string[];
  readonly layers: readonly Layer[];
  readonly spec: TrainingSpec;
  /** All that one rewrite sets, for keys that stand for several settings at once; undefined: one setting alone is asked about. */
  readonly wanted?: ReadonlyMap<SettingName, unknown>;
}

/** One change of one place. Equal edits fall together; two different ones on one place are refused. */
export type SourceEdit =
  /** Replaces the whole token. */
  | { readonly kind: 'token'; readonly index: number; readonly text: string }
  | { readonly kind: 'remove'; readonly index: number }
  /** Puts tokens before `argv[at]` (`at` = argv.length: at the end). `key` names the flag, one per `at`. */
  | { readonly kind: 'insert'; readonly at: number; readonly key: string; readonly tokens: readonly string[] }
  /** Sets a key in a copy of a file of `Reading.files`; the fold makes the copy and points the launch at it. */
  | { readonly kind: 'file'; readonly path: string; readonly keyPath: readonly string[]; readonly value: FileValue }
  | { readonly kind: 'env'; readonly name: string; readonly value: string };

export type FileValue = string | number | boolean | null | readonly FileValue[] | { readonly [key: string]: FileValue };

export type Written =
  | { readonly ok: true; readonly edits: readonly SourceEdit[] }
  /** One clause: why this launch cannot be told. */
  | { readonly ok: false; readonly reason: string };

/**
 * Options of a launcher however they came (its own argv, a trainer's YAML that passes them on): names with `_`, values as
 * read. `accelerate/` exports `readAccelerateOptions: ReadOptions` for trainers whose own command starts it.
 */
export type Options = ReadonlyMap<
  string,
  { readonly value: unknown; readonly origin: Origin; readonly pointer?: Pointer }
>;
export type ReadOptions = (options: Options, position: Position, context: ReadContext) => Result<Reading>;

/**
 * Form of `editYaml` (yaml-edit.ts) and `editJson`: sets values in a text by ranges and leaves every other byte alone. An
 * error says why not (alias, merge key, interpolation, duplicate key) and where.
 */
export type EditText = (
  text: string,
  edits: readonly { readonly keyPath: readonly string[]; readonly value: FileValue }[],
) => Result<string>;
