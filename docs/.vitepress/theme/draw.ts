/** Draws a picture of a sample: lines, or a map of scores under its points. */
import type { Picture } from "../messages";

const COLOURS = ["#2a6fdb", "#e07b18", "#2f9e62", "#b04ac2"];

export function draw(canvas: HTMLCanvasElement, { values, points = [], classes = [] }: Picture): void {
  const context = canvas.getContext("2d")!;
  context.clearRect(0, 0, canvas.width, canvas.height);
  if (isMap(values)) {
    drawMap(context, values);
    points.forEach(([x, y], i) => {
      dot(context, x, y, COLOURS[classes[i] ?? 0]!);
    });
    return;
  }
  const lines: [string, ArrayLike<number>][] = isList(values) ? [["", values]] : Object.entries(values);
  drawLines(context, lines);
}

const isList = (values: Picture["values"]): values is ArrayLike<number> => "length" in values;
const isMap = (values: Picture["values"]): values is readonly ArrayLike<number>[] =>
  isList(values) && typeof values[0] === "object";

/** Scores from 0 to 1, from the first class's colour to the second's. Row 0 is at the top. */
function drawMap(context: CanvasRenderingContext2D, rows: readonly ArrayLike<number>[]): void {
  const { width, height } = context.canvas;
  const [w, h] = [width / rows[0]!.length, height / rows.length];
  rows.forEach((row, i) => {
    for (let j = 0; j < row.length; j++) {
      const score = row[j]!;
      context.fillStyle = `rgb(${42 + 182 * score} ${111 + 12 * score} ${219 - 195 * score} / ${0.15 + 0.6 * Math.abs(score - 0.5)})`;
      const [left, top] = [Math.round(j * w), Math.round(i * h)];
      context.fillRect(left, top, Math.round((j + 1) * w) - left, Math.round((i + 1) * h) - top);
    }
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

function drawLines(context: CanvasRenderingContext2D, lines: readonly (readonly [string, ArrayLike<number>])[]): void {
  const { width, height } = context.canvas;
  const ink = getComputedStyle(context.canvas).color;
  const finite = lines.flatMap(([, line]) => Array.from(line).filter(Number.isFinite));
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const size = width / 40;
  const [left, bottom] = [size * 4, height - size * 2];
  context.font = `${size}px sans-serif`;
  context.fillStyle = ink;
  context.fillText(high.toPrecision(3), 0, size * 1.5);
  context.fillText(low.toPrecision(3), 0, bottom);
  lines.forEach(([name, line], k) => {
    context.strokeStyle = context.fillStyle = COLOURS[k % COLOURS.length]!;
    context.lineWidth = width / 300;
    context.beginPath();
    for (let i = 0; i < line.length; i++) {
      const x = left + ((width - left - size) * i) / Math.max(1, line.length - 1);
      const y = size + (bottom - size) * (1 - (line[i]! - low) / (high - low || 1));
      if (i === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    }
    context.stroke();
    context.fillText(name, width - size * (name.length * 0.6 + 1), size * (1.5 + 1.4 * k));
  });
}
