/** Takes the pictures of the gallery: each demo after a while of training. */
import { join } from "node:path";
import { openPage } from "@opt/testkit/browser";
import type { Browser } from "playwright-core";

/** A demo's page, what shows that it has gone far enough, and what is taken. */
const DEMOS = [
  ["race", "optimizer-race", /Step [5-9]\d\d of/, ".picture"],
  ["spirals", "spirals", /step [4-6]\d\d/, ".picture"],
  ["same-run", "same-run", /(1[2-9]|20) steps/, ".lines"],
  ["gpt", "gpt", /After 1[3-9]\d\d steps/, "figure"],
  ["fine-tune", "fine-tune", /Loss on unseen text/, ".texts"],
  ["checkpoint", "checkpoint", /22:43/, ".details"],
] as const;

export async function photographDemos(browser: Browser, address: string, folder: string): Promise<void> {
  for (const [name, path, ready, part] of DEMOS) {
    const page = await openPage(browser, { viewport: { width: 520, height: 900 } });
    await page.goto(`${address}demos/${path}`);
    if (name !== "spirals") await page.getByRole("button", { name: /^(Start|Take the sample)$/ }).click();
    await page.getByText(ready).first().waitFor();
    await page
      .locator(part)
      .first()
      .screenshot({ path: join(folder, `demo-${name}.png`) });
    await page.close();
  }
}
