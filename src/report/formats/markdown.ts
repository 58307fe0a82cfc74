import { formatBytes } from '../../core/index.ts';
import { maskSecrets } from '../mask-secrets.ts';
import { renderMemoryBars } from '../memory-bars.ts';
import { type CheckedLaunch, changeLines, messagesOf, outcomeText, verdictMessage } from './checked-launch.ts';

const BARS = { colour: false, width: 80 } as const;

/** Text that a table cell shows as it is. */
const cell = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('|', '\\|').replaceAll('\n', ' ');
const code = (text: string): string => `\`${text.replaceAll('`', "'")}\``;

function summaryRow(launch: CheckedLaunch): string {
  const { report } = launch;
  const plan = report?.plan;
  const estimate = plan && plan.verdict !== 'unknown' ? plan.estimate : report?.estimate;
  const need = estimate ? formatBytes(estimate.vram.devicePeakBytes) : '';
  const room = report?.budget ? formatBytes(report.budget.usableBytes) : '';
  const cells = [code(launch.name), launch.failed ? `**${outcomeText(launch)}**` : outcomeText(launch), need, room];
  return `| ${cells.map(cell).join(' | ')} |`;
}

function details(launch: CheckedLaunch): string {
  const { report } = launch;
  const plan = report?.plan;
  const estimate = plan && plan.verdict !== 'unknown' ? plan.estimate : report?.estimate;
  const verdict = verdictMessage(launch);
  const changes = report && plan?.verdict === 'rewrite' ? changeLines(plan.changes, report) : [];
  const said = messagesOf(launch).map(({ severity, message, location, notes = [], help }) => {
    const place = location === undefined ? '' : ` (${code(location)})`;
    const facts = changes.length > 0 && message === verdict?.message ? [] : notes;
    return [
      `- **${severity}**: ${message}${place}`,
      ...facts.map((fact) => `  - ${fact}`),
      ...(help === undefined ? [] : [`  - help: ${help}`]),
    ].join('\n');
  });
  const bars = estimate ? renderMemoryBars(estimate, report?.budget, BARS).join('\n') : '';
  const blocks = [
    `### ${code(launch.name)}`,
    bars === '' ? '' : `\`\`\`text\n${bars}\n\`\`\``,
    changes.map((change) => `- ${change}`).join('\n'),
    said.join('\n'),
  ];
  return blocks.filter((block) => block !== '').join('\n\n');
}

/** A page for a job summary or a comment: one table of all launches, then each with its bars, changes and messages. */
export function renderMarkdown(launches: readonly CheckedLaunch[]): string {
  const table = ['| launch | verdict | needs | usable |', '| --- | --- | ---: | ---: |', ...launches.map(summaryRow)];
  return maskSecrets(['## snug: does it fit?', table.join('\n'), ...launches.map(details)].join('\n\n'));
}
