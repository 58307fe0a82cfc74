import { error } from '../core/index.ts';
import { didYouMean, supportedDialects } from '../dialects/index.ts';
import { dialectsJson, renderDialect, renderDialects } from '../report/index.ts';
import { EXIT } from './exit-codes.ts';
import type { DialectsFlags } from './program.ts';
import { showDiagnostics } from './show.ts';
import { createTerminal } from './terminal.ts';

/** `snug dialects`: what is read and written, for all launch tools or those named. */
export function dialectsAction(names: readonly string[], flags: DialectsFlags): void {
  const terminal = createTerminal({ quiet: false });
  const all = supportedDialects();
  const unknown = names.filter((name) => !all.some((dialect) => dialect.id === name));
  if (unknown.length > 0) {
    const ids = all.map((dialect) => dialect.id);
    const problems = unknown.map((name) =>
      error('unknown-dialect', `${name} is no launch tool that is known here`, {
        help: `${didYouMean(name, ids)}; snug dialects lists all`,
      }),
    );
    showDiagnostics(terminal, problems);
    process.exitCode = EXIT.usage;
    return;
  }
  const shown = names.length === 0 ? all : names.map((name) => all.find((dialect) => dialect.id === name)!);
  const style = { colour: terminal.outColour, width: terminal.width, unicode: terminal.unicode };
  if (flags.json) terminal.out(JSON.stringify(dialectsJson(shown)));
  else if (names.length === 0) terminal.out(renderDialects(shown, style));
  else terminal.out(shown.map((dialect) => renderDialect(dialect, style)).join('\n\n'));
}
