export function withLock<T>(
  folder: string,
  work: () => T | Promise<T>,
  options?: { onWait?: () => void; pollMs?: number },
): Promise<T>;
