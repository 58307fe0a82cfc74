import type { StoredTensor } from './safetensors.ts';

/** A model's config.json and where it was found. */
export interface LocatedModel {
  /** As the launch names it. */
  readonly nameOrPath: string;
  /** `folder` and `cache` are on this machine, `table` ships with snug, `online` was downloaded, `inline` stood in the launch config. */
  readonly source: 'folder' | 'cache' | 'table' | 'online' | 'inline';
  /** Path or table name, for messages. */
  readonly place: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** Bytes of the safetensors (or .bin) files, when they are on this machine. */
  readonly checkpointBytes?: number;
  /** Largest single weight file, bytes. */
  readonly largestShardBytes?: number;
  /** Parameters counted from safetensors headers (tensors as stored). */
  readonly storedParameters?: number;
  /** The tensors themselves, as the headers list them. */
  readonly storedTensors?: readonly StoredTensor[];
  /** Folder or id of the PEFT adapter that named this model as its base, when the launch points at one. */
  readonly adapter?: string;
  /** What was odd on the way, for the estimate's `assumptions`. */
  readonly notes?: readonly string[];
}
