import { EXIT } from './exit-codes.ts';
import { FAULT_HELP, isUsageFault } from './faults.ts';
import { outliveTerminal } from './hangup.ts';
import { buildProgram } from './program.ts';

async function main(): Promise<void> {
  outliveTerminal();
  try {
    await buildProgram().parseAsync(process.argv);
  } catch (failure) {
    if (isUsageFault(failure)) {
      process.exitCode = failure.exitCode === 0 ? 0 : EXIT.usage;
    } else {
      const reason = failure instanceof Error ? failure.message : String(failure);
      process.stderr.write(`error[own-fault]: snug itself failed: ${reason}\n  help: ${FAULT_HELP}\n`);
      if (process.env.SNUG_DEBUG && failure instanceof Error) process.stderr.write(`${failure.stack}\n`);
      process.exitCode = EXIT.ownFault;
    }
  }
}

void main();
