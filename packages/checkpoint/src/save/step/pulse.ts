/** Runs `body` again and again, never twice at once, whether or not it fails; keeps no process alive. Returns its end. */
export function pulse(body: () => Promise<void>, milliseconds: number): () => Promise<void> {
  let running: Promise<void> | undefined;
  const timer: { unref?(): void } | number = setInterval(() => {
    running ??= body()
      .catch(() => {})
      .finally(() => {
        running = undefined;
      });
  }, milliseconds);
  // Node's timers hold their process up, a browser's do not.
  if (typeof timer === "object") timer.unref?.();
  return async () => {
    clearInterval(timer as never);
    await running;
  };
}
