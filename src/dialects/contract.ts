import type { Diagnostic, FilePort, Result } from '../core/index.ts';
import type { OffloadTarget, Origin, SettingName, SpecChange, Strategy, TrainingSpec } from '../spec/index.ts';
import type { SourceEdit, StackView, Written } from './dialect.ts';
import type { FoundVersions } from './versions.ts';

export type DialectKind = 'launcher' | 'trainer' | 'engine';

/** The command as typed, token by token. Leading assignments and wrappers stay in `argv`; nothing is expanded or executed. */
export interface LaunchCommand {
  readonly argv: readonly string[];
}

/** A file that a launch refers to, as text. */
export interface LaunchSource {
  /** As the launch names it. */
  readonly path: string;
  readonly absolutePath: string;
  readonly text: string;
  /** The file cannot be read, and `text` stands in for it. */
  readonly missing?: true;
}

/** What reading needs of the world: text of files, variables, versions. Handed in, so that readers stay pure. */
export interface ReadContext {
  readonly cwd: string;
  readonly homeDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** A file relative to `cwd`; a failure carries the diagnostic to show. */
  readonly source: (path: string) => Result<LaunchSource>;
  readonly files: FilePort;
  /** GPUs the trainer will see; undefined: unknown. */
  readonly visibleGpus: number | undefined;
  /** Packages of the trainer's Python, as far as they were found. */
  readonly versions?: FoundVersions;
  /** Which of several training commands of a script is meant: the one at this line. */
  readonly chosen?: { readonly path: string; readonly line: number };
}

export interface Unread {
  readonly key: string;
  readonly origin: Origin;
  /** `no-effect-on-memory`, `said-elsewhere` (`auto`), `unknown-key`, `interpolation`, … or a clause. */
  readonly reason: string;
}

export interface StackEntry {
  readonly dialect: string;
  readonly kind: DialectKind;
  /** `cli`: the trainer's own command starts the processes. */
  readonly via?: 'cli';
}

/** Members of settings by the setting's name. */
export type SettingParts = { readonly [K in SettingName]?: Readonly<Record<string, unknown>> };

/** How this launch is told to go on from a checkpoint. */
export type ResumeSupport =
  /** Known to work, or the trainer resumes by itself from its output folder. */
  | { readonly kind: 'supported'; readonly how: string }
  /** The run must start over in a fresh output folder; `reason` is one clause. */
  | { readonly kind: 'unsupported'; readonly reason: string };

/** What is known of processes and sharding, part by part; null: not known. */
export interface Parallelism {
  readonly nodes: number | null;
  readonly processesPerNode: number | null;
  readonly strategy: Strategy | null;
  readonly offload: readonly OffloadTarget[];
}

/** What a batch job asks its scheduler for, a node. */
export interface Allocation {
  readonly nodes: number;
  readonly tasksPerNode?: number;
  readonly cpusPerTask?: number;
  readonly gpusPerNode?: number;
  /** As the cluster calls it: `a100`. */
  readonly gpuType?: string;
  /** RAM that the job may use on a node, and where that is said. */
  readonly hostRamBytes?: number;
  readonly hostRamPlace?: string;
}

/** A launch as understood: the whole stack folded into one spec. */
export interface LaunchReading {
  readonly command: LaunchCommand;
  /** Environment the command itself sets (`VAR=x`, `env VAR=x`, a config's `env:` map). */
  readonly env: Readonly<Record<string, string>>;
  readonly wrappers: readonly string[];
  readonly stack: readonly StackEntry[];
  /** Every file that was read, as the launch names it. */
  readonly files: readonly string[];
  readonly spec: TrainingSpec;
  /** The parts of `spec.distributed`, also where one of them is unknown and the setting therefore null. */
  readonly parallelism?: Parallelism;
  /** As far as they are known, the parts of other settings whose value is null. */
  readonly parts?: SettingParts;
  readonly unread: readonly Unread[];
  readonly diagnostics: readonly Diagnostic[];
  /** Argv index of the program that is found on PATH (`python`, `trl`, `torchrun`, …), wrappers peeled. */
  readonly programIndex: number;
  /** The trainer's Python as far as the command says (`python3.11`, `/opt/env/bin/python`); undefined: found through the program. */
  readonly python: string | undefined;
  readonly resume: ResumeSupport;
  /** What the job that this launch is asks for. */
  readonly allocation?: Allocation;
  /** Why it is not started here: another machine does, later. */
  readonly startsElsewhere?: Diagnostic;
  /** Why the launch is read, but what it needs is not predicted. */
  readonly notEstimated?: Diagnostic;
  /** Whether the launch can be told this value; else the reason, one clause. `together`: all that is set with it. */
  readonly writable: (
    setting: SettingName,
    to: unknown,
    together?: Readonly<Partial<Record<SettingName, unknown>>>,
  ) => true | string;
  /** What `writeLaunch` works from; no other room looks inside. */
  readonly internals?: LaunchInternals;
}

/** How a launch is told new values: by edits of its stack, or through the placeholders of a native config. */
export interface LaunchInternals {
  readonly view: StackView;
  /** What the trainer sees, the command's own assignments included. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Edits that make `setting` be `to`; `wanted`: everything that the same rewrite sets. */
  readonly edit: (setting: SettingName, to: unknown, wanted?: ReadonlyMap<SettingName, unknown>) => Written;
  /** Edits that every started launch needs, changed or not (`{placeholders}` of a native command). */
  readonly always: (changed: ReadonlyMap<SettingName, unknown>) => readonly SourceEdit[];
  /** A launch inside a script: the fitted command put back where it came from. */
  readonly outer?: (fitted: WordedLaunch, copyFolder: string) => WordedLaunch;
  /** Program of the command that `view` holds, where that is not the command as typed. */
  readonly programIndex?: number;
}

/** One word of a fitted command. */
export interface FittedWord {
  readonly text: string;
  /** The word of the command before, unchanged. */
  readonly index?: number;
  /** The word that it stands in place of. */
  readonly instead?: number;
}

export interface WordedLaunch extends FittedLaunch {
  readonly words: readonly FittedWord[];
}

/** A launch with changes written into it. Files are copies, the user's own stay as they are. */
export interface FittedLaunch {
  readonly argv: readonly string[];
  /** Variables to add to the environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly files: readonly {
    readonly source: string;
    readonly copy: string;
    readonly before: string;
    readonly text: string;
  }[];
  /** The change stands in a script of which no copy may be started: what to write there by hand, and why. */
  readonly byHand?: { readonly reason: string; readonly place: string; readonly command: string };
}

export interface WriteRequest {
  readonly changes: readonly SpecChange[];
  /** Continue from this checkpoint folder. */
  readonly resumeFrom?: string;
  /** Start over into this output folder. */
  readonly outputDir?: string;
  /** Absolute folder where copies of config files go; names inside are ours to choose. */
  readonly copyFolder: string;
}
