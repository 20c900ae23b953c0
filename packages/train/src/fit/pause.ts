/** Lets the program's other work run: timers, messages, a page's events. */

/** Milliseconds of training between two pauses: a page draws 60 times a second, and asks its worker as often. */
const EVERY = typeof setImmediate === "function" ? 100 : 12;

/** Returns a function that gives a promise to await when a pause is due. */
export function pauses(): () => Promise<void> | undefined {
  let last = performance.now();
  return () => {
    const now = performance.now();
    if (now - last < EVERY) return undefined;
    return nextTurn().then(() => {
      last = performance.now();
    });
  };
}

/** A turn of the event loop. Timers of pages are held back after a few turns, messages are not. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === "function") {
      setImmediate(resolve);
      return;
    }
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}
