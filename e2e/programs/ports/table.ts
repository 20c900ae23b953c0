/** The ports, and what a step of each is given. */
import { arange, rand, randint, randn, sin, type Tensor, tensor } from "@opt/core";
import * as actorCritic from "./decisions/actor-critic";
import * as dqn from "./decisions/dqn";
import * as maml from "./decisions/maml";
import * as dcgan from "./generative/dcgan";
import * as ddpm from "./generative/ddpm";
import * as vae from "./generative/vae";
import * as wganGp from "./generative/wgan-gp";
import * as distillation from "./images/distillation";
import * as mixedPrecision from "./images/mixed-precision";
import * as mnist from "./images/mnist";
import * as resnet from "./images/resnet";
import * as styleTransfer from "./images/style-transfer";
import * as superResolution from "./images/super-resolution";
import * as unet from "./images/unet";
import * as vit from "./images/vit";
import * as gpt from "./language/gpt";
import * as lstmLanguageModel from "./language/lstm-language-model";
import * as minGru from "./language/min-gru";
import * as nameClassification from "./language/name-classification";
import * as packedLstm from "./language/packed-lstm";
import * as seq2seq from "./language/seq2seq";
import * as speech from "./language/speech";
import * as translation from "./language/translation";
import * as word2vec from "./language/word2vec";
import type { Port } from "./port";
import * as byol from "./representation/byol";
import * as recommender from "./representation/recommender";
import * as siamese from "./representation/siamese";
import * as simclr from "./representation/simclr";
import * as textClassification from "./representation/text-classification";
import * as gaussianProcess from "./science/gaussian-process";
import * as gcn from "./science/gcn";
import * as nerf from "./science/nerf";
import * as pinn from "./science/pinn";
import * as timeSeries from "./science/time-series";

const integers = (...numbers: number[]) => tensor(numbers, { dtype: "i32" });
const coins = (size: number) => randint(2, [size]).to("f32");
const waves = (shape: readonly number[]) => sin(arange(shape[1]!).add(rand([shape[0]!, 1]).mul(6)));

const port = ({ program }: { program: Port["program"] }, batch: () => readonly Tensor[]): Port => ({ program, batch });

export const PORTS: Readonly<Record<string, Port>> = {
  "decisions/actor-critic": port(actorCritic, () => [randn([7, 4]), randint(2, [7]), rand([7])]),
  "decisions/dqn": port(dqn, () => [
    randn([6, 4]),
    randint(3, [6, 1]),
    rand([6]),
    randn([6, 4]),
    randint(2, [6]).to("bool"),
  ]),
  "decisions/maml": port(maml, () => [1, 2, 3, 4].map(() => randn([3, 5, 1]))),
  "generative/dcgan": port(dcgan, () => [rand([4, 1, 8, 8]), randn([4, 6])]),
  "generative/ddpm": port(ddpm, () => [rand([4, 1, 6, 6]), randn([4, 1, 6, 6]), randint(20, [4])]),
  "generative/vae": port(vae, () => [rand([6, 16]), randn([6, 3])]),
  "generative/wgan-gp": port(wganGp, () => [randn([8, 2]), randn([8, 3]), rand([8, 1])]),
  "images/distillation": port(distillation, () => [randn([8, 12]), randint(5, [8])]),
  "images/mixed-precision": port(mixedPrecision, () => [randn([8, 12]), randint(5, [8])]),
  "images/mnist": port(mnist, () => [rand([6, 1, 8, 8]), randint(10, [6])]),
  "images/resnet": port(resnet, () => [randn([6, 3, 8, 8]), randint(5, [6])]),
  "images/style-transfer": port(styleTransfer, () => []),
  "images/super-resolution": port(superResolution, () => [rand([2, 1, 12, 12])]),
  "images/unet": port(unet, () => [rand([2, 1, 8, 8]), coins(128).reshape([2, 1, 8, 8])]),
  "images/vit": port(vit, () => [randn([4, 3, 8, 8]), randint(5, [4])]),
  "language/gpt": port(gpt, () => [randint(11, [4, 6]), randint(11, [4, 6])]),
  "language/lstm-language-model": port(lstmLanguageModel, () => [randint(11, [5, 3]), randint(11, [5, 3])]),
  "language/min-gru": port(minGru, () => [randint(11, [4, 7]), randint(11, [4, 7])]),
  "language/name-classification": port(nameClassification, () => [randint(7, [4, 5]), randint(4, [4])]),
  "language/packed-lstm": port(packedLstm, () => [randint(1, 11, [4, 6]), integers(6, 2, 5, 1), coins(4)]),
  "language/seq2seq": port(seq2seq, () => [randint(9, [4, 5]), randint(9, [4, 5])]),
  "language/speech": port(speech, () => [
    randn([3, 4, 9]),
    randint(1, 5, [3, 3]),
    integers(9, 7, 8),
    integers(3, 2, 0),
  ]),
  "language/translation": port(translation, () => [
    randint(1, 9, [3, 6]).mul(arange(6).lt(integers(6, 4, 3).unsqueeze(1))),
    randint(1, 9, [3, 6]).mul(arange(6).lt(integers(5, 6, 4).unsqueeze(1))),
  ]),
  "language/word2vec": port(word2vec, () => [randint(30, [6]), randint(30, [6]), randint(30, [6, 4])]),
  "representation/byol": port(byol, () => [randn([8, 10]), randn([8, 10])]),
  "representation/recommender": port(recommender, () => [
    randint(12, [8]),
    randint(15, [8]),
    randint(6, [8, 3]),
    rand([8]).mul(5),
  ]),
  "representation/siamese": port(siamese, () => [randn([5, 10]), randn([5, 10]), randn([5, 10]), coins(5)]),
  "representation/simclr": port(simclr, () => [randn([6, 10]), randn([6, 10])]),
  "representation/text-classification": port(textClassification, () => [
    randint(20, [14]),
    integers(0, 3, 3, 9),
    randint(4, [4]),
  ]),
  "science/gaussian-process": port(gaussianProcess, () => [rand([10, 2]).mul(3), randn([10])]),
  "science/gcn": port(gcn, () => [randn([8, 5]), randint(3, [8])]),
  "science/nerf": port(nerf, () => [randn([6, 3]), randn([6, 3]), rand([6, 3])]),
  "science/pinn": port(pinn, () => [rand([12, 1]).mul(2).sub(1), rand([12, 1])]),
  "science/time-series": port(timeSeries, () => [waves([3, 5]), waves([3, 5])]),
};
