/** A run of a sample, as its component shows it. */
import { withBase } from "vitepress";
import { onUnmounted, reactive, shallowRef } from "vue";
import type { Message, Picture } from "../messages";

const LINES = 500;

export function useRunner() {
  let worker: Worker | undefined;
  const state = reactive({
    status: "idle" as "idle" | "running" | "done" | "failed" | "stopped",
    output: "",
    /** Of the last error: its words, and the line of the code, counted from 1. */
    problem: "",
    line: undefined as number | undefined,
  });
  const picture = shallowRef<Picture>();

  function stop() {
    worker?.terminate();
    worker = undefined;
    if (state.status === "running") state.status = "stopped";
  }

  function print(text: string) {
    const lines = `${state.output}${text}\n`.split("\n");
    state.output = lines.slice(-LINES).join("\n");
  }

  /** `wrongLine` finds the line that does not parse, which browsers keep to themselves. */
  function run(code: string, wrongLine: () => number | undefined = () => undefined) {
    stop();
    state.status = "running";
    Object.assign(state, { output: "", problem: "", line: undefined });
    picture.value = undefined;
    worker = new Worker(withBase("/opt/worker.js"), { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data.kind === "log") print(data.text);
      else if (data.kind === "plot") picture.value = data.picture;
      else {
        if (data.kind === "error") {
          state.problem = data.text;
          state.line = data.line ?? (data.text.startsWith("SyntaxError") ? wrongLine() : undefined);
          print(state.line === undefined ? data.text : `Line ${state.line}: ${data.text}`);
        }
        state.status = data.kind === "done" ? "done" : "failed";
      }
    };
    worker.onerror = () => {
      print("The worker did not start. Reload the page.");
      state.status = "failed";
    };
    worker.postMessage(code);
  }

  onUnmounted(stop);
  return { state, picture, run, stop };
}
