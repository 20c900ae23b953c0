/** How numbers and times are written. */

/** Four digits that say something: 0.1234, 12.35, 1.2e-5. */
export function shortNumber(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return String(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : value.toPrecision(4);
}

/** 7 s, 2:05, 1:02:05. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const [first, ...rest] = parts[0] === 0 ? parts.slice(1) : parts;
  return [first, ...rest.map((part) => String(part).padStart(2, "0"))].join(":");
}

/** "loss 0.1234  accuracy 0.9612". */
export const numbers = (logs: Readonly<Record<string, number>>): string =>
  Object.entries(logs)
    .map(([name, value]) => `${name} ${shortNumber(value)}`)
    .join("  ");
