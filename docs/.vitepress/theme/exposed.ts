/** A demo's Worker that exposes a function, as its component shows it. */
import type { StartedRun } from "@opt/train/worker";
import { withBase } from "vitepress";
import { onUnmounted, reactive } from "vue";

/** Calls the function that the Worker exposes. */
export type Ask = <Result>(options: unknown) => StartedRun<Result>;

export function useExposed(name: string) {
  let worker: Worker | undefined;
  let runs = 0;
  const state = reactive({ status: "idle" as "idle" | "running" | "done" | "failed" | "stopped", problem: "" });

  function stop() {
    runs++;
    worker?.terminate();
    if (state.status === "running") state.status = "stopped";
  }

  /** Begins a new Worker, which ends with the next run. */
  async function run(body: (ask: Ask) => Promise<void>) {
    stop();
    const own = runs;
    Object.assign(state, { status: "running", problem: "" });
    try {
      const bundle = withBase("/opt/train/worker.js"); // built from source beside the pages
      const { start } = (await import(/* @vite-ignore */ bundle)) as typeof import("@opt/train/worker");
      if (own !== runs) return;
      const begun = new Worker(withBase(`/opt/demos/${name}.js`), { type: "module" });
      worker = begun;
      await body((options) => start(begun, options));
      if (own === runs) state.status = "done";
    } catch (error) {
      if (own === runs) Object.assign(state, { status: "failed", problem: (error as Error).message });
    }
  }

  onUnmounted(stop);
  return { state, run, stop };
}
