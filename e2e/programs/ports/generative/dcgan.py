import torch
from torch import nn
from torch.nn import functional as F


def program():
    generator = nn.Sequential(
        nn.Unflatten(1, (6, 1, 1)),
        nn.ConvTranspose2d(6, 8, 4, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1, bias=False),
        nn.Tanh(),
    )
    discriminator = nn.Sequential(
        nn.Conv2d(1, 8, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.LeakyReLU(0.2),
        nn.Conv2d(8, 1, 4, bias=False),
        nn.Sigmoid(),
        nn.Flatten(),
    )

    def weights_init(layer):
        if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(layer.weight, 0, 0.1)

    generator.apply(weights_init)
    discriminator.apply(weights_init)
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    discriminator_optimizer = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))

    def step(real, noise):
        ones = torch.full((real.shape[0], 1), 1.0)
        discriminator_optimizer.zero_grad()
        fake = generator(noise)
        of_real = F.binary_cross_entropy(discriminator(real), 0.9 * ones)
        of_fake = F.binary_cross_entropy(discriminator(fake.detach()), 0 * ones)
        of_real.backward()
        of_fake.backward()
        discriminator_optimizer.step()
        generator_optimizer.zero_grad()
        of_generator = F.binary_cross_entropy(discriminator(fake), ones)
        of_generator.backward()
        generator_optimizer.step()
        return of_real + of_fake + of_generator

    return {"generator": generator, "discriminator": discriminator}, step
