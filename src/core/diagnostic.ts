export type Severity = 'error' | 'warning' | 'note';

/**
 * One message to the user: what (lowercase, no full stop, stands alone), where, facts, and the way out.
 * Only `help` proposes something, with the exact flag or command.
 */
export interface Diagnostic {
  /** kebab-case, stable: other people's scripts match on it. */
  readonly code: string;
  readonly severity: Severity;
  readonly message: string;
  /** `file.yaml:12`, `file.yaml:12:5`, `argv[7]`, `env NAME`. */
  readonly location?: string;
  /** The source text at `location`, one line. */
  readonly excerpt?: string;
  readonly notes?: readonly string[];
  readonly help?: string;
}

type Details = Omit<Diagnostic, 'code' | 'severity' | 'message'>;

export const error = (code: string, message: string, details: Details = {}): Diagnostic => ({
  code,
  severity: 'error',
  message,
  ...details,
});
export const warning = (code: string, message: string, details: Details = {}): Diagnostic => ({
  code,
  severity: 'warning',
  message,
  ...details,
});
export const note = (code: string, message: string, details: Details = {}): Diagnostic => ({
  code,
  severity: 'note',
  message,
  ...details,
});
