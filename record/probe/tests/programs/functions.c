/* Compiled with -finstrument-functions. */
__attribute__((noinline)) int leaf(int n)
{
	return n * 2;
}

__attribute__((noinline)) int branch(int n)
{
	return leaf(n) + leaf(n + 1);
}

int main(void)
{
	return branch(1) == 6 ? 0 : 1;
}
