/** Who set a value. The rewrite goes back to this place, and every message names it. */
export type Origin =
  /** Index into the whole command line as typed, 0 = first token. */
  | { readonly kind: 'argv'; readonly index: number }
  /** 1-based line of a file that was read. */
  | { readonly kind: 'file'; readonly path: string; readonly line: number }
  | { readonly kind: 'env'; readonly name: string }
  /** The tool's own default in that version, `trl` `1.13`. */
  | { readonly kind: 'default'; readonly tool: string; readonly version: string }
  /** Follows from other facts, `config.json torch_dtype`, `2 visible GPUs`. */
  | { readonly kind: 'derived'; readonly from: string }
  /** Chosen by snug's planner. */
  | { readonly kind: 'plan'; readonly lever: string };

/** The one-line form used in JSON and messages: `argv[7]`, `file.yaml:12`, `env NAME`, `default trl 1.13`. */
export function formatOrigin(origin: Origin): string {
  switch (origin.kind) {
    case 'argv':
      return `argv[${origin.index}]`;
    case 'file':
      return `${origin.path}:${origin.line}`;
    case 'env':
      return `env ${origin.name}`;
    case 'default':
      return `default ${origin.tool} ${origin.version}`;
    case 'derived':
      return origin.from;
    case 'plan':
      return `plan ${origin.lever}`;
  }
}
