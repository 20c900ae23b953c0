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

/** Names of the packages that are bundled beside this file. */
declare const OPT_PACKAGES: readonly string[];

function fail(error: unknown): void {
  const { name = "", message = String(error), stack = "" } = error instanceof Error ? error : {};
  const [, line] = /blob:[^\s)]*:(\d+):\d+/.exec(stack) ?? [];
  tell({
    kind: "error",
    text: name === "" ? message : `${name}: ${message}`,
    line: line === undefined ? undefined : Number(line),
  });
}

const IMPORT = /((?:\bfrom|\bimport)\s*\(?\s*["'])([@\w][^"']*)(["'])/g;

/** What the code imports that is not here, with its line. */
function missingIn(code: string): { text: string; line: number } | undefined {
  for (const { 2: name, index } of code.matchAll(IMPORT)) {
    if (/^https?:/.test(name!) || OPT_PACKAGES.includes(name!)) continue;
    const text = `The playground has no package "${name}". It has ${OPT_PACKAGES.join(", ")}.`;
    return { text, line: code.slice(0, index).split("\n").length };
  }
  return undefined;
}
addEventListener("unhandledrejection", ({ reason }) => fail(reason));

addEventListener("message", async ({ data: code }: MessageEvent<string>) => {
  // A worker has no import map: names of packages become the addresses of their bundles.
  const resolved = code.replace(IMPORT, (whole, before, name, after) =>
    name.startsWith("@opt/") ? before + new URL(`./${name.slice(5)}.js`, import.meta.url).href + after : whole,
  );
  const url = URL.createObjectURL(new Blob([resolved], { type: "text/javascript" }));
  try {
    await import(url);
    tell({ kind: "done" });
  } catch (error) {
    const missing =
      error instanceof TypeError && /modul|import|fetch/i.test(error.message) ? missingIn(code) : undefined;
    if (missing === undefined) fail(error);
    else tell({ kind: "error", ...missing });
  } finally {
    URL.revokeObjectURL(url);
  }
});
