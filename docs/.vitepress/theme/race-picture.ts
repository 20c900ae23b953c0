/** Draws the optimizer race: the surface once, then only the new part of each path. */
import { MAP, RACERS, type Racer, SURFACES, type SurfaceName } from "../demos/racers";

const SHADES = 12;

/** Each has a hue of its own. */
export const hueOf = (racer: Racer) => (RACERS.indexOf(racer) * 137.5) % 360;

export const colorOf = (racer: Racer, isDark: boolean) => `hsl(${hueOf(racer)} ${isDark ? "80% 68%" : "75% 38%"})`;

export class RacePicture {
  readonly #context: CanvasRenderingContext2D;

  constructor(
    canvas: HTMLCanvasElement,
    readonly surface: SurfaceName,
    readonly isDark: boolean,
  ) {
    this.#context = canvas.getContext("2d")!;
  }

  /** Levels of the loss in even shares of the picture, darker where it is lower, with rings around the lowest points. */
  drawMap(values: Float32Array): void {
    const context = this.#context;
    const { width, height } = context.canvas;
    const sorted = values.slice().sort();
    const levels = Array.from(
      { length: SHADES - 1 },
      (_, i) => sorted[Math.floor(((i + 1) * sorted.length) / SHADES)]!,
    );
    context.clearRect(0, 0, width, height);
    const [w, h] = [width / MAP, height / MAP];
    values.forEach((value, i) => {
      const level = levels.findIndex((each) => value < each);
      const share = (level < 0 ? SHADES - 1 : level) / (SHADES - 1);
      context.fillStyle = this.isDark ? `hsl(215 35% ${12 + 22 * share}%)` : `hsl(215 45% ${82 + 16 * share}%)`;
      const [x, y] = [Math.round((i % MAP) * w), Math.round(Math.floor(i / MAP) * h)];
      context.fillRect(x, y, Math.ceil(w), Math.ceil(h));
    });
    for (const [x, y] of SURFACES[this.surface].goals) {
      const [left, top] = this.#place(x, y);
      context.beginPath();
      context.arc(left, top, width / 60, 0, 2 * Math.PI);
      context.lineWidth = width / 240;
      context.strokeStyle = this.isDark ? "#fff" : "#111";
      context.stroke();
    }
  }

  /** Points x, y, x, y ... from point number `from` on. */
  drawPath(racer: Racer, points: readonly number[], from = 0): void {
    const context = this.#context;
    context.beginPath();
    for (let i = Math.max(0, from - 1); 2 * i < points.length; i++) {
      const [x, y] = this.#place(points[2 * i]!, points[2 * i + 1]!);
      if (i === Math.max(0, from - 1)) context.moveTo(x, y);
      else context.lineTo(x, y);
    }
    context.lineWidth = context.canvas.width / 260;
    context.lineJoin = "round";
    context.strokeStyle = colorOf(racer, this.isDark);
    context.stroke();
  }

  #place(x: number, y: number): [number, number] {
    const { width, height } = this.#context.canvas;
    const { x: columns, y: rows } = SURFACES[this.surface];
    return [((x - columns[0]) / (columns[1] - columns[0])) * width, ((rows[1] - y) / (rows[1] - rows[0])) * height];
  }
}
