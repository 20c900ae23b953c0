// Lines of ledgers, and where two ledgers part. A page compares them without the code that writes them.

/** A plain value of a run: a counter, a learning rate. Numbers that JSON can't hold are texts. */
export type LedgerValue = number | string | boolean | null;

/** A step of a run, with the checksum of each tensor. */
export interface LedgerLine {
  readonly step: number;
  /** CRC-32 of dtype, shape and elements by name: eight hexadecimal digits. */
  readonly tensors: Readonly<Record<string, string>>;
  /** Plain values by name, where the run records some. */
  readonly values?: Readonly<Record<string, LedgerValue>>;
}

/** The first step at which two ledgers differ, and the tensors and values that do. */
export interface LedgerDifference {
  /** Steps that both have. */
  readonly steps: number;
  /** `null`: all of them are equal. */
  readonly first: { readonly step: number; readonly tensors: readonly string[] } | null;
}

/** Compares the steps that both ledgers have. */
export function compareLedgers(a: readonly LedgerLine[], b: readonly LedgerLine[]): LedgerDifference {
  const others = new Map(b.map((line) => [line.step, line]));
  const shared = a.filter(({ step }) => others.has(step));
  for (const line of shared) {
    const { step } = line;
    const [one, other] = [line, others.get(step)!].map(({ tensors, values }) => ({ ...tensors, ...values }));
    const names = new Set([...Object.keys(one!), ...Object.keys(other!)]);
    const differing = [...names].filter((name) => one![name] !== other![name]);
    if (differing.length > 0) return { steps: shared.length, first: { step, tensors: differing } };
  }
  return { steps: shared.length, first: null };
}
