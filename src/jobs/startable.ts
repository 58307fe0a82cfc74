/** `VAR=x` in front of a command is the shell's doing; there is no shell here, so it goes into the environment. */
const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s;

/** The words that start a process, and the variables that stood before them. */
export function startable(argv: readonly string[]): {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
} {
  const first = argv.findIndex((token) => !ASSIGNMENT.test(token));
  const from = first < 0 ? argv.length : first;
  const assigned = argv.slice(0, from).map((token) => ASSIGNMENT.exec(token)!);
  return { argv: argv.slice(from), env: Object.fromEntries(assigned.map(([, name, value]) => [name!, value!])) };
}
