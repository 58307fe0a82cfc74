import type { CheckedLaunch } from './checked-launch.ts';

/** Forms for build systems beside text and JSON; a new one is one file and one line here. Each is loaded where it is asked for. */
export const CHECK_FORMATS = {
  github: async (launches: readonly CheckedLaunch[]) => (await import('./github.ts')).renderGithub(launches),
  markdown: async (launches: readonly CheckedLaunch[]) => (await import('./markdown.ts')).renderMarkdown(launches),
  junit: async (launches: readonly CheckedLaunch[]) => (await import('./junit.ts')).renderJunit(launches),
} as const;

export type CheckFormat = keyof typeof CHECK_FORMATS;
export type { CheckedLaunch };
