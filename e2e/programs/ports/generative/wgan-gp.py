import torch
from torch import nn


def program():
    generator = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
    critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))

    def gradient_penalty(real, fake, alpha):
        between = torch.lerp(real, fake, alpha).detach().requires_grad_()
        (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        return (gradient.norm(2, dim=1) - 1).square().mean()

    def step(real, noise, alpha):
        fake = generator(noise)
        penalty = gradient_penalty(real, fake, alpha)
        loss = critic(fake.detach()).mean() - critic(real).mean() + 10 * penalty
        critic_optimizer.zero_grad()
        loss.backward()
        critic_optimizer.step()
        generator_optimizer.zero_grad()
        (-critic(fake).mean()).backward()
        generator_optimizer.step()
        return loss

    return {"generator": generator, "critic": critic}, step
