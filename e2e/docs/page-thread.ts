/**
 * How long a page works until it is there, and its thread at a time, from Chromium's trace. Times are of the processor, not of the clock: a busy machine
 * interrupts a page's tasks, and makes each look longer than it is.
 */
import type { Browser, Page } from "playwright-core";

export interface Busy {
  /** Milliseconds of the longest task. */
  readonly longestTask: number;
  /** Milliseconds that the thread worked at most between a move of the pointer and the end of the page's answer. */
  readonly longestAnswer: number;
  readonly moves: number;
}

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds: begin and length by the clock, length by the processor. */
  readonly ts: number;
  readonly dur: number;
  readonly tdur?: number;
  readonly args: { readonly name?: string };
}

export interface Opened {
  /** Milliseconds that all threads of the page worked until its first paint, and until `body` ended. */
  readonly painted: number;
  readonly whole: number;
}

const CATEGORIES = ["disabled-by-default-devtools.timeline", "toplevel", "blink.user_timing", "loading"];
/** Of threads of their own, and of those that wait for any work. */
const TASKS = ["RunTask", "ThreadPool_RunTask"];
const MOVES = 12;
const MOVE = "pointer move";

/** Moves the pointer while `body` runs. */
export async function watchThread(browser: Browser, page: Page, body: () => Promise<void>): Promise<Busy> {
  await page.evaluate((name) => {
    addEventListener("pointermove", ({ timeStamp }) => {
      performance.measure(name, { start: timeStamp, end: performance.now() });
    });
  }, MOVE);
  return busyIn(await traced(browser, page, () => Promise.all([body(), movePointer(page)])));
}

/** `body` opens the page, which has no other before. */
export async function watchOpening(browser: Browser, page: Page, body: () => Promise<void>): Promise<Opened> {
  const events = await traced(browser, page, body);
  const paint = events.find(({ name }) => name === "firstContentfulPaint")!;
  const tasks = timed(events.filter(({ name, ph, pid }) => TASKS.includes(name) && ph === "X" && pid === paint.pid));
  const workOf = (some: readonly TraceEvent[]) => some.reduce((sum, { tdur }) => sum + tdur!, 0) / 1000;
  return { painted: workOf(tasks.filter(({ ts }) => ts < paint.ts)), whole: workOf(tasks) };
}

/** Those with a time of the processor, which Chromium leaves out of a few. @throws Error where it leaves it out of many */
function timed(tasks: readonly TraceEvent[]): readonly TraceEvent[] {
  const found = tasks.filter(({ tdur }) => tdur !== undefined);
  if (found.length < 0.9 * tasks.length) throw new Error(`${found.length} of ${tasks.length} tasks have a time.`);
  return found;
}

async function traced(browser: Browser, page: Page, body: () => Promise<unknown>): Promise<readonly TraceEvent[]> {
  await browser.startTracing(page, { categories: CATEGORIES });
  await body();
  return JSON.parse((await browser.stopTracing()).toString()).traceEvents;
}

async function movePointer(page: Page): Promise<void> {
  for (let i = 0; i < MOVES; i++) {
    await page.mouse.move(40 + 7 * i, 300 + 5 * i);
    await page.waitForTimeout(60);
  }
}

function busyIn(events: readonly TraceEvent[]): Busy {
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid}:${tid}`;
  const named = events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain");
  const mains = new Set(named.map(threadOf));
  const tasks = timed(
    events.filter((event) => event.name === "RunTask" && event.ph === "X" && mains.has(threadOf(event))),
  );
  const [begins, ends] = ["b", "e"].map((phase) =>
    events.filter(({ name, ph }) => name === MOVE && ph === phase).sort((a, b) => a.ts - b.ts),
  ) as [TraceEvent[], TraceEvent[]];
  const answers = begins.map((begin, i) => {
    const end = ends[i]!;
    const overlapping = tasks.filter(
      (task) => task.pid === begin.pid && task.ts < end.ts && task.ts + task.dur > begin.ts,
    );
    return overlapping.reduce((sum, { tdur }) => sum + tdur!, 0);
  });
  return {
    longestTask: Math.max(...tasks.map(({ tdur }) => tdur!)) / 1000,
    longestAnswer: Math.max(...answers) / 1000,
    moves: answers.length,
  };
}
