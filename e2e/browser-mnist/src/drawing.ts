/** The loss curve and the digits. */
import { type Digits, PIXELS, SIDE } from "./digits";

const INK = "#334155";
const FAINT = "#e2e8f0";
const CURVE = "#0d9488";
const LEFT = 70;
const BOTTOM = 40;

/** Loss over steps, with a logarithmic scale of loss: raw and faint, and smoothed. */
export function drawCurve(canvas: HTMLCanvasElement, losses: readonly number[]): void {
  const context = canvas.getContext("2d")!;
  const { width, height } = canvas;
  context.clearRect(0, 0, width, height);
  context.font = "20px system-ui, sans-serif";
  const low = Math.log(Math.min(0.1, ...losses));
  const high = Math.log(3);
  const xOf = (step: number) => LEFT + (step / Math.max(1, losses.length - 1)) * (width - LEFT - 20);
  const yOf = (loss: number) => 20 + ((high - Math.log(loss)) / (high - low)) * (height - BOTTOM - 20);
  context.fillStyle = INK;
  context.strokeStyle = FAINT;
  for (const tick of [0.03, 0.1, 0.3, 1, 3]) {
    if (Math.log(tick) < low) continue;
    context.fillText(String(tick), 15, yOf(tick) + 7);
    context.beginPath();
    context.moveTo(LEFT, yOf(tick));
    context.lineTo(width - 20, yOf(tick));
    context.stroke();
  }
  context.fillText(`loss over ${losses.length} steps`, LEFT, height - 10);
  let average = losses[0] ?? 0;
  const smooth = losses.map((loss) => {
    average += 0.1 * (loss - average);
    return average;
  });
  for (const [values, color, lineWidth] of [
    [losses, `${CURVE}44`, 2],
    [smooth, CURVE, 4],
  ] as const) {
    context.strokeStyle = color;
    context.lineWidth = lineWidth;
    context.beginPath();
    values.forEach((loss, step) => {
      context.lineTo(xOf(step), yOf(loss));
    });
    context.stroke();
  }
  context.lineWidth = 1;
}

/** Digits, each with the name that it was given: green if right, red with the true one if wrong. */
export function drawDigits(target: HTMLElement, digits: Digits, positions: Int32Array, names: ArrayLike<number>): void {
  target.replaceChildren(
    ...Array.from(positions, (position, i) => {
      const figure = document.createElement("figure");
      const canvas = document.createElement("canvas");
      canvas.width = SIDE;
      canvas.height = SIDE;
      const image = new ImageData(SIDE, SIDE);
      for (let pixel = 0; pixel < PIXELS; pixel++) {
        const paper = 255 - digits.pixels[position * PIXELS + pixel]!;
        image.data.set([paper, paper, paper, 255], 4 * pixel);
      }
      canvas.getContext("2d")!.putImageData(image, 0, 0);
      const caption = document.createElement("figcaption");
      const truth = digits.labels[position]!;
      caption.className = names[i] === truth ? "right" : "wrong";
      caption.textContent = names[i] === truth ? String(truth) : `${names[i]} ≠ ${truth}`;
      figure.append(canvas, caption);
      return figure;
    }),
  );
}
