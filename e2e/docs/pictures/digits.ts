/** Films the digits page while it learns: `digits.gif`, and its last frame as `digits.png`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openPage } from "@opt/testkit/browser";
import gifenc from "gifenc";
import type { Browser, Page } from "playwright-core";
import { PNG } from "pngjs";
import { serve } from "../../browser-mnist/server";

const [WIDTH, HEIGHT] = [1440, 900];
/** Frames are half the size of the page, so that the file stays under 1 MB. */
const SCALE = 0.5;
const COLORS = 48;
const [LEARNING_FRAMES, DRAWING_FRAMES] = [16, 14];
const [FRAME_MS, LAST_FRAME_MS] = [250, 3000];

export async function filmDigits(browser: Browser, folder: string): Promise<void> {
  const server = await serve();
  try {
    const page = await openPage(browser, {
      viewport: { width: WIDTH, height: HEIGHT },
      deviceScaleFactor: SCALE,
    });
    await page.goto(`${server.resolvedUrls!.local[0]!}?device=wasm`);
    await page.locator("#train:enabled").waitFor();
    const frames = await learnAndRead(page);
    writeFileSync(join(folder, "digits.png"), frames.at(-1)!);
    writeFileSync(join(folder, "digits.gif"), animation(frames));
    await page.close();
  } finally {
    await server.close();
  }
}

/** Trains for a while, then draws a seven. */
async function learnAndRead(page: Page): Promise<Buffer[]> {
  const frames: Buffer[] = [];
  const film = async () => frames.push(await page.screenshot());
  await page.click("#train");
  for (let i = 0; i < LEARNING_FRAMES; i++) {
    await page.waitForTimeout(FRAME_MS);
    await film();
  }
  await page.click("#train");
  const { x, y, width, height } = (await page.locator("#pad").boundingBox())!;
  const corners = [
    [0.25, 0.2],
    [0.75, 0.2],
    [0.45, 0.85],
  ] as const;
  await page.mouse.move(x + corners[0][0] * width, y + corners[0][1] * height);
  await page.mouse.down();
  const steps = DRAWING_FRAMES / (corners.length - 1);
  for (let side = 1; side < corners.length; side++) {
    const [from, to] = [corners[side - 1]!, corners[side]!];
    for (let i = 1; i <= steps; i++) {
      const at = (axis: 0 | 1) => from[axis] + ((to[axis] - from[axis]) * i) / steps;
      await page.mouse.move(x + at(0) * width, y + at(1) * height);
      await film();
    }
  }
  await page.mouse.up();
  await page.getByText(/^It reads/).waitFor();
  await film();
  return frames;
}

function animation(frames: readonly Buffer[]): Uint8Array {
  const { GIFEncoder, quantize, applyPalette } = gifenc;
  const gif = GIFEncoder();
  const images = frames.map((frame) => PNG.sync.read(frame));
  const palette = quantize(images.at(-1)!.data, COLORS);
  images.forEach(({ data, width, height }, i) => {
    const delay = i === images.length - 1 ? LAST_FRAME_MS : FRAME_MS;
    gif.writeFrame(applyPalette(data, palette), width, height, { palette, delay });
  });
  gif.finish();
  return gif.bytes();
}
