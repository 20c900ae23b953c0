/** The report: one HTML file that holds everything it shows. */
import { cpus } from "node:os";
import { accuracyChart, descentChart, lossCharts, resumeChart, speedChart } from "./charts";
import type { Descent } from "./counterexample";
import type { Resumed } from "./resume";
import { SPEED_SIZE, type Speed } from "./speed";
import { resultTable, type Table } from "./table";
import type { TrainingResult } from "./train";

export interface Report {
  readonly device: string;
  readonly epochs: number;
  readonly batchSize: number;
  readonly seed: number;
  readonly results: readonly TrainingResult[];
  readonly speeds: readonly Speed[];
  readonly resumed: Resumed;
  /** Adam, then AMSGrad. */
  readonly descents: readonly Descent[];
}

const STYLE = `
  :root { color-scheme: light dark; --paper: light-dark(#f8fafc, #0e131a); --card: light-dark(#fff, #171e28);
    --edge: light-dark(#e2e8f0, #2b3644); --text: light-dark(#0f172a, #e7ecf3); --soft: light-dark(#475569, #a3b0c2); }
  body { margin: 0; background: var(--paper); color: var(--text); font: 16px/1.55 system-ui, sans-serif; }
  main { max-width: 1320px; margin: 0 auto; padding: 40px 24px 64px; }
  h1 { font-size: 30px; letter-spacing: -0.02em; margin: 0 0 4px; }
  h2 { font-size: 19px; margin: 40px 0 4px; }
  h3 { font-size: 15px; font-weight: 600; margin: 0 0 8px; }
  p { color: var(--soft); margin: 0 0 16px; max-width: 76ch; }
  .cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 20px; }
  .card { background: var(--card); border: 1px solid var(--edge); border-radius: 12px; padding: 20px; overflow-x: auto; }
  .card:only-child { max-width: 720px; }
  .card svg { display: block; width: 100%; height: auto; }
  .panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 260px), 1fr)); gap: 8px; }
  table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
  th, td { padding: 8px 12px; text-align: right; white-space: nowrap; }
  th:first-child, td:first-child { text-align: left; }
  th { color: var(--soft); font-size: 13px; font-weight: 600; }
  td { border-top: 1px solid var(--edge); }
  td:first-child { font-weight: 600; }
`;

const escaped = (text: string) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

function htmlTable({ head, rows }: Table): string {
  const row = (tag: string, cells: readonly string[]) =>
    `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join("")}</tr>`;
  return `<table><thead>${row("th", head)}</thead><tbody>${rows.map((cells) => row("td", cells)).join("")}</tbody></table>`;
}

const card = (title: string, body: string) => `<section class="card"><h3>${escaped(title)}</h3>${body}</section>`;

/** How the steps compare with the limit, in words. */
function speedSentence(speeds: readonly Speed[]): string {
  if (speeds.some(({ limit }) => limit === undefined))
    return "Without a compiler (g++ with OpenMP) the limit is not measured.";
  const factors = speeds.map(({ ours, limit }) => ours / limit!);
  const [least, most] = [Math.min(...factors).toFixed(2), Math.max(...factors).toFixed(2)];
  if (Math.min(...factors) < 0.9) return "Other programs were at work: the limit itself came out slower than a step.";
  return `Here a step takes ${least} to ${most} times the limit.`;
}

export function htmlReport(report: Report): string {
  const { device, epochs, batchSize, seed, results, speeds, resumed, descents } = report;
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? "unknown processor"}, Node ${process.versions.node}`;
  const ends = descents.map((descent) => descent.trace.at(-1)!.x.toFixed(2).replace("-", "−"));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>MNIST with Opt</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>MNIST with Opt</h1>
<p>A 784-256-10 network, ${epochs} ${epochs === 1 ? "epoch" : "epochs"} in batches of ${batchSize}, the same first weights and order of images for
every optimizer (seed ${seed}). Device <strong>${escaped(device)}</strong> on ${escaped(machine)}.</p>
<div class="card">${htmlTable(resultTable(results))}</div>
<h2>Training</h2>
<p>Each run has a panel of its own, with the others in grey. The final loss above is the mean of the last 100 steps; seconds and images a second are of training alone, without the test images.</p>
<div class="cards">
${card("Training loss", `<div class="panels">${lossCharts(results).join("")}</div>`)}
${card("Test accuracy", accuracyChart(results))}
</div>
<h2>Speed</h2>
<p>One step over ${SPEED_SIZE.toLocaleString("en")} parameters, beside a compiled loop over all cores that moves the same bytes and computes
next to nothing: no optimizer can be faster than that. ${speedSentence(speeds)}</p>
<div class="cards">${card("Optimizer steps and the memory limit", speedChart(speeds, device))}</div>
<h2>Save, cut anew, resume</h2>
<p>After ${resumed.before.length} steps the run is saved in slices for 4 ranks; the slices are cut anew for 3, and a second run goes on from those.
${
  resumed.resumed.every((loss, step) => loss === resumed.uninterrupted[step])
    ? `All ${resumed.resumed.length} losses that follow are those of the run that never stopped, bit for bit.`
    : "The losses that follow differ from those of the run that never stopped."
}</p>
<div class="cards">${card("Loss before and after", resumeChart(resumed))}</div>
<h2>Where Adam fails</h2>
<p>Reddi, Kale &amp; Kumar (2018): every 101st loss is 1010 x, all others are −10 x, on [−1, 1]. On average the loss falls towards x = −1.
Adam forgets the rare large gradient and ends at ${ends[0]}; AMSGrad, which keeps the largest second moment, ends at ${ends[1]}.</p>
<div class="cards">
${card("Position", descentChart(descents, "x", { label: "position x" }))}
${card("Average regret", descentChart(descents, "regret", { label: "average regret", log: true }))}
</div>
</main>
</body>
</html>
`;
}
