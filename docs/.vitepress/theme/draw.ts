/** Draws the map of a sample: scores under its points. */
import type { Picture } from "../messages";

const COLOURS = ["#2a6fdb", "#e07b18", "#2f9e62", "#b04ac2"];

type Rows = readonly ArrayLike<number>[];

export const isList = (values: Picture["values"]): values is ArrayLike<number> | Rows => "length" in values;

/** The rows of a map, if the picture is one. */
export function rowsOf({ values }: Picture): Rows | undefined {
  return isList(values) && typeof values[0] === "object" ? (values as Rows) : undefined;
}

/** Scores from 0 to 1, from the first class's colour to the second's. Row 0 is at the top. */
export function drawMap(canvas: HTMLCanvasElement, rows: Rows, { points = [], classes = [] }: Picture): void {
  const context = canvas.getContext("2d")!;
  const { width, height } = canvas;
  context.clearRect(0, 0, width, height);
  const [w, h] = [width / rows[0]!.length, height / rows.length];
  rows.forEach((row, i) => {
    for (let j = 0; j < row.length; j++) {
      const score = row[j]!;
      context.fillStyle = `rgb(${42 + 182 * score} ${111 + 12 * score} ${219 - 195 * score} / ${0.15 + 0.6 * Math.abs(score - 0.5)})`;
      const [left, top] = [Math.round(j * w), Math.round(i * h)];
      context.fillRect(left, top, Math.round((j + 1) * w) - left, Math.round((i + 1) * h) - top);
    }
  });
  points.forEach(([x, y], i) => {
    dot(context, x, y, COLOURS[classes[i] ?? 0]!);
  });
}

function dot(context: CanvasRenderingContext2D, x: number, y: number, colour: string): void {
  const { width, height } = context.canvas;
  context.beginPath();
  context.arc(((x + 1) / 2) * width, ((1 - y) / 2) * height, width / 110, 0, 2 * Math.PI);
  context.fillStyle = colour;
  context.fill();
  context.strokeStyle = "#fff";
  context.stroke();
}
