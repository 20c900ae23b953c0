/** What JavaScript lets through: every call is tried with arguments of the wrong kind, and may answer with an OptError alone. */
import { OptError } from "@opt/core";

class Stranger {
  readonly shape = 5;
}

const circle: unknown[] = [];
circle.push(circle);

/** New ones each time: a call may change what it is given. */
const WRONG: readonly (() => unknown)[] = [
  () => undefined,
  () => null,
  () => "text",
  () => true,
  () => Number.NaN,
  () => -1,
  () => 0.5,
  () => Number.POSITIVE_INFINITY,
  () => 2 ** 40,
  () => 1n,
  () => Symbol("wrong"),
  () => [],
  () => [2 ** 40],
  () => [[1, 2]],
  () => [1n, 2n],
  () => ["text", null],
  () => [undefined],
  () => circle,
  () => ({}),
  () => ({ dim: 0 }),
  () => ({ unknown_option: 1, dtype: 5 }),
  () => Object.create(null),
  () => new Map([["a", 1]]),
  () => new Stranger(),
  () => BigInt64Array.of(1n),
  () => new DataView(new ArrayBuffer(8)),
  () => () => 1,
  () => async () => 1,
];

/**
 * Calls with each wrong value in each place of the valid arguments, in one place more, in all places, and without any.
 *
 * @returns what was thrown that is no OptError
 */
export async function rawErrors(
  where: string,
  call: (...args: never[]) => unknown,
  valid: () => readonly unknown[],
): Promise<string[]> {
  const raw: string[] = [];
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0; // thousands are thrown, and nobody reads their stacks
  const attempt = async (args: readonly unknown[], what: string) => {
    try {
      await call(...(args as never[]));
    } catch (error) {
      if (!(error instanceof OptError)) raw.push(`${where} with ${what}: ${String(error)}`);
    }
  };
  const places = valid().length;
  await attempt([], "nothing");
  for (const [i, wrong] of WRONG.entries()) {
    for (let place = 0; place <= places; place++) {
      const args = [...valid()];
      args[place] = wrong();
      await attempt(args, `wrong value ${i} as argument ${place}`);
    }
    await attempt(valid().map(wrong), `wrong value ${i} everywhere`);
  }
  Error.stackTraceLimit = stackTraceLimit;
  return raw;
}
