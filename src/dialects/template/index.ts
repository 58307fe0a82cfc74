// https://example.com/options-of-the-tool
import type { Dialect } from '../dialect.ts';
import { startOfTemplate } from './detect.ts';
import { TEMPLATE_EXAMPLES } from './example.ts';
import { readTemplate, type TemplateDetail } from './read.ts';
import { writeTemplate } from './write.ts';

/** Copy this folder for a new trainer that takes flags; it stands in no registry. CONTRIBUTING.md walks through it. */
export const template: Dialect<TemplateDetail> = {
  id: 'template',
  kind: 'trainer',
  title: 'The tool, as its makers write it',
  docs: 'https://example.com/options-of-the-tool',
  examples: TEMPLATE_EXAMPLES,
  detect: startOfTemplate,
  read: readTemplate,
  write: writeTemplate,
};
