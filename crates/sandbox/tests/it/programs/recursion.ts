function depth(of: number): number {
  return depth(of + 1) + 1;
}

export const main = () => depth(0);
