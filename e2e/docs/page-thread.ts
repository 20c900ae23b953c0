/**
 * How long a page's thread is busy at a time, from Chromium's trace. Times are of the processor, not of the clock: a busy machine
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

const CATEGORIES = ["disabled-by-default-devtools.timeline", "toplevel", "blink.user_timing"];
const MOVES = 12;
const MOVE = "pointer move";

/** Moves the pointer while `body` runs. */
export async function watchThread(browser: Browser, page: Page, body: () => Promise<void>): Promise<Busy> {
  await page.evaluate((name) => {
    addEventListener("pointermove", ({ timeStamp }) => {
      performance.measure(name, { start: timeStamp, end: performance.now() });
    });
  }, MOVE);
  await browser.startTracing(page, { categories: CATEGORIES });
  await Promise.all([body(), movePointer(page)]);
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  return busyIn(traceEvents);
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
  const tasks = events.filter((event) => event.name === "RunTask" && event.ph === "X" && mains.has(threadOf(event)));
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
