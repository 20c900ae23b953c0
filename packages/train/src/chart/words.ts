/** A chart in words: whole for screen readers, and at a place for the pointer and the arrow keys. */
import { type Chart, type Series, xOf } from "./chart";
import { format, type Scale, scalesOf } from "./scale";

/** A chart in words: its title, axes and series. */
export function describe(chart: Chart): string {
  const { x, y } = scalesOf(chart);
  const axis = (name: string, { label, log }: Chart["x"], { range, format: text }: Scale) =>
    `${name}: ${label}${log ? ", logarithmic" : ""}, ${text(range[0])} to ${text(range[1])}`;
  const rows = chart.y.rows;
  const axes = [axis("x", chart.x, x), ...(rows ? [] : [axis("y", chart.y, y)])];
  return `${chart.title}. ${axes.join("; ")}. ${chart.series.map((one) => seriesInWords(one, chart)).join("; ")}`;
}

function seriesInWords(one: Series, { x, y }: Chart): string {
  if (y.rows) {
    const bars = Array.from(one.y, (row, i) => `${y.rows![row]} ${one.labels?.[i] ?? format(xOf(one, i))}`);
    return `${one.name}: ${bars.join(", ")}`;
  }
  const values = Array.from(one.y).filter(Number.isFinite);
  if (values.length === 0) return `${one.name}: no values yet`;
  const text = scalesOf({ title: "", x, y, series: [one] }).y.format;
  const [first, last] = [text(values[0]!), text(values.at(-1)!)];
  if (one.as === "bars") return `${one.name}: ${values.length} bars, at most ${text(Math.max(...values))}`;
  return values.length === 1 ? `${one.name}: ${first}` : `${one.name}: from ${first} to ${last}`;
}

/** How many places there are to read along x. */
export const placesOf = ({ series }: Chart): number => Math.max(0, ...series.map(({ y }) => y.length));

/** The values at a place along x, from 0 to 1, and where exactly they are. */
export function readAt(chart: Chart, share: number): { share: number; text: string } {
  const { x, y } = scalesOf(chart);
  const wanted = x.valueOf(share);
  const parts = chart.series.flatMap((one) => {
    const isBars = one.as === "bars";
    const at = nearest(one, wanted, isBars);
    if (at < 0) return [];
    const place = isBars ? (xOf(one, at) + xOf(one, at + 1)) / 2 : xOf(one, at);
    return [{ place, text: `${one.name} ${y.format(one.y[at]!)}` }];
  });
  if (parts.length === 0) return { share, text: "no values yet" };
  const { place } = parts.reduce((a, b) => (Math.abs(b.place - wanted) < Math.abs(a.place - wanted) ? b : a));
  return {
    share: x.shareOf(place),
    text: `${chart.x.label} ${x.format(place)}: ${parts.map((part) => part.text).join(", ")}`,
  };
}

function nearest(one: Series, wanted: number, isBars: boolean): number {
  let best = -1;
  let distance = Number.POSITIVE_INFINITY;
  for (let i = 0; i < one.y.length; i++) {
    if (!Number.isFinite(one.y[i]!)) continue;
    const away = Math.abs((isBars ? (xOf(one, i) + xOf(one, i + 1)) / 2 : xOf(one, i)) - wanted);
    if (away < distance) [best, distance] = [i, away];
  }
  return best;
}
