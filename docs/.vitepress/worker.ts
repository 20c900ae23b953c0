/** Runs the code of a sample in a Worker, and tells the page what it prints and plots. */
import type { Message, Picture } from "./messages";
import { show } from "./show";

const tell = (message: Message) => postMessage(message);

for (const level of ["log", "info", "warn", "error"] as const) {
  console[level] = (...values: unknown[]) => tell({ kind: "log", text: values.map(show).join(" ") });
}

/** Draws numbers as a line, records of numbers as lines, rows of numbers as a map. The last picture stays. */
const plot = (values: Picture["values"], options: Omit<Picture, "values"> = {}) =>
  tell({ kind: "plot", picture: { ...options, values } });
Object.assign(globalThis, { plot });

const fail = (error: unknown) =>
  tell({ kind: "error", text: error instanceof Error ? `${error.name}: ${error.message}` : String(error) });
addEventListener("unhandledrejection", ({ reason }) => fail(reason));

addEventListener("message", async ({ data: code }: MessageEvent<string>) => {
  // A worker has no import map: names of packages become the addresses of their bundles.
  const resolved = code.replace(
    /((?:\bfrom|\bimport)\s*\(?\s*["'])@opt\/([\w/-]+)(["'])/g,
    (_, before, name, after) => before + new URL(`./${name}.js`, import.meta.url).href + after,
  );
  const url = URL.createObjectURL(new Blob([resolved], { type: "text/javascript" }));
  try {
    await import(url);
    tell({ kind: "done" });
  } catch (error) {
    fail(error);
  } finally {
    URL.revokeObjectURL(url);
  }
});
