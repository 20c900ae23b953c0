/** The part of `npm run pictures` that opens pages: the digits, the site's demos, what the course's samples draw, and `social.png`. */
import { fileURLToPath } from "node:url";
import { executablePath, launchBrowser } from "@opt/testkit/browser";
import { buildSite } from "../../../tools/docs/build.mjs";
import { serve } from "../../../tools/docs/serve.mjs";
import { photographCourse } from "./course";
import { photographDemos } from "./demos";
import { filmDigits } from "./digits";
import { photographSocial } from "./social";

const inRoot = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
if (executablePath === undefined) throw new Error("[pictures] Chromium is missing. Install it, or set OPT_CHROMIUM.");
const [site, folder] = [inRoot("runs/pictures/site"), inRoot("docs/pictures")];
await buildSite(site);
const [browser, { address, close }] = await Promise.all([launchBrowser(), serve(site)]);
try {
  await filmDigits(browser, folder);
  await photographDemos(browser, address, folder);
  await photographCourse(browser, address, folder);
  await photographSocial(browser, address, inRoot("docs/public/social.png"));
} finally {
  await browser.close();
  close();
}
