/** Whether `version` (`4.48.1`) comes before `other` (`4.50`); text that is not a version counts as the newest. */
export function isBefore(version: string, other: string): boolean {
  const [a, b] = [parts(version), parts(other)];
  if (!a || !b) return false;
  for (let i = 0; i < Math.max(a.length, b.length); i += 1) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

function parts(version: string): number[] | undefined {
  const match = /^v?(\d+(?:\.\d+)*)/.exec(version.trim());
  return match ? match[1]!.split('.').map(Number) : undefined;
}
