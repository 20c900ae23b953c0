/** Waits for all of them, also when one fails: nothing may still be at work when its caller tidies up. Throws the first failure. */
export async function allOf(running: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(running)) if (result.status === "rejected") throw result.reason;
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
