import type { Diagnostic } from '../core/index.ts';
import { renderDiagnostic } from '../report/index.ts';
import type { Terminal } from './terminal.ts';

/** Talk goes to stderr, one block a message. */
export function showDiagnostics(terminal: Terminal, diagnostics: readonly Diagnostic[]): void {
  for (const diagnostic of diagnostics) {
    terminal.err(
      renderDiagnostic(diagnostic, { colour: terminal.errColour, width: terminal.width, unicode: terminal.unicode }),
    );
  }
}
