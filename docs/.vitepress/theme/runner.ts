/** A run of a sample, as its component shows it. */
import { withBase } from "vitepress";
import { onUnmounted, reactive, shallowRef } from "vue";
import type { Message, Picture } from "../messages";

const LINES = 500;

export function useRunner() {
  let worker: Worker | undefined;
  const state = reactive({ status: "idle" as "idle" | "running" | "done" | "failed" | "stopped", output: "" });
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

  function run(code: string) {
    stop();
    state.status = "running";
    state.output = "";
    picture.value = undefined;
    worker = new Worker(withBase("/opt/worker.js"), { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data.kind === "log") print(data.text);
      else if (data.kind === "plot") picture.value = data.picture;
      else {
        if (data.kind === "error") print(data.text);
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
