import { CommanderError } from 'commander';

export const FAULT_HELP =
  'this is a fault of snug, not of your run; repeat with SNUG_DEBUG=1 to see where, and report it';

/** Help, version and wrong usage end commander by an exception that carries its exit code. */
export const isUsageFault = (failure: unknown): failure is CommanderError => failure instanceof CommanderError;
