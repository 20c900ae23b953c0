/** A timer that keeps no process alive: Node's hold theirs up, a browser's do not. */
export function pulse(body: () => void, milliseconds: number): () => void {
  const timer: { unref?(): void } | number = setInterval(body, milliseconds);
  if (typeof timer === "object") timer.unref?.();
  return () => clearInterval(timer as never);
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
